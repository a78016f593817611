package firn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// A horizon file has two slots. Each write goes to the one that has not the latest record, so that
// one that is torn, or that the disk never confirmed, leaves the record before whole. A slot is a
// line of text: a checksum, the record, and spaces. It is as long as a page, so that the write of
// one does not touch the other.
const (
	slotSize      = 4096
	horizonFormat = 1
)

// horizonRecord is what a slot says.
type horizonRecord struct {
	Format  int       `json:"format"`
	Layout  string    `json:"layout"`
	NodeID  int64     `json:"node_id"`
	File    string    `json:"file"`    // the file's number in its file system, which a copy in that has not
	Count   uint64    `json:"count"`   // of writes: of two records the greater is the latest
	Horizon time.Time `json:"horizon"` // all IDs that were given lie before it
}

// slot returns the text of the record.
func (r horizonRecord) slot() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // no clock shows a year that has no text
	}
	slot := bytes.Repeat([]byte(" "), slotSize)
	copy(slot, fmt.Sprintf("%08x %s", crc32.ChecksumIEEE(text), text))
	slot[slotSize-1] = '\n'
	return slot
}

// latestRecord returns the latest record, and in which slot it is. It reports false when no slot has one.
func latestRecord(contents []byte) (latest horizonRecord, slot int64, ok bool) {
	for i := range int64(2) {
		from := min(int(i)*slotSize, len(contents))
		r, whole := parseSlot(contents[from:min(from+slotSize, len(contents))])
		if whole && (!ok || r.Count > latest.Count) {
			latest, slot, ok = r, i, true
		}
	}
	return latest, slot, ok
}

func parseSlot(slot []byte) (r horizonRecord, ok bool) {
	sum, text, _ := bytes.Cut(bytes.TrimRight(slot, " \n"), []byte(" "))
	if len(slot) != slotSize || string(sum) != fmt.Sprintf("%08x", crc32.ChecksumIEEE(text)) {
		return r, false
	}
	return r, json.Unmarshal(text, &r) == nil
}

// check returns an error when the record is not one that a generator may go on from, which would write mine. Without ok
// there is none.
func (r horizonRecord) check(ok bool, mine horizonRecord) error {
	const remedy = "make sure that nothing makes IDs of node ID %d and that the clock is right, then remove the file"
	switch {
	case !ok:
		return fmt.Errorf("it is empty or damaged; "+remedy, mine.NodeID)
	case r.Format != horizonFormat:
		return fmt.Errorf("it has the format %d; want %d, or the version of firn that wrote it",
			r.Format, horizonFormat)
	case r.Layout != mine.Layout || r.NodeID != mine.NodeID:
		return fmt.Errorf("it belongs to node ID %d of the layout %s; want another file for node ID %d of the "+
			"layout %s",
			r.NodeID, r.Layout, mine.NodeID, mine.Layout)
	case r.File != mine.File:
		return fmt.Errorf("it is a copy, or comes from a backup, and does not know which IDs were given since; "+remedy,
			mine.NodeID)
	}
	return nil
}

var errFileInUse = errors.New("another generator has it open, in this process or another one; " +
	"want one generator for each node ID")
