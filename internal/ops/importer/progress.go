package importer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/filelock"
	"github.com/firn-id/firn/internal/base/packed"
)

// The file of progress begins with a head, of one line. A record for each call follows, in the order of the rows'
// times: the number of IDs, a checksum, and the IDs. One without IDs says that the job has ended. A record is on the
// disk before the next call begins, so only the last one can be torn.
const (
	headSize   = 1024
	headBegins = "firn import 1 "
	recordHead = 8
)

// head is what a file of progress is about.
type head struct {
	Sequencer string `json:"sequencer"`
	Job       string `json:"job"`
	Token     string `json:"token"` // begins the keys of its calls
	Input     string `json:"input"` // its digest
	Rows      int64  `json:"rows"`
	Batch     int    `json:"batch"` // rows of a call; the last one may have fewer
	Next      bool   `json:"next"`
}

// progress is a file of progress, locked, or what stands in for one that nobody wants.
type progress struct {
	path  string // empty: there is no file
	file  *os.File
	head  head // zero: there is none yet
	size  int64
	given int64   // how many IDs it has
	last  firn.ID // of them; only if there are some
	ended bool    // the job has
}

var checksums = crc32.MakeTable(crc32.Castagnoli)

// openProgress opens a file, and creates it if it does not exist. It cuts off what a crash has torn.
func openProgress(path string) (*progress, error) {
	p := &progress{path: path}
	if path == "" {
		return p, nil
	}
	file, err := filelock.Open(path)
	if err != nil {
		return nil, err
	}
	p.file = file
	if err := p.read(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func (p *progress) close() {
	if p.file != nil {
		p.file.Close()
	}
}

func (p *progress) read() error {
	begin := make([]byte, headSize+1)
	n, err := io.ReadFull(p.file, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if begin = begin[:n]; n >= headSize {
		if p.head, err = parseHead(begin[:headSize]); err == nil {
			return p.readRecords()
		}
	}
	torn := len(bytes.Trim(begin, "\x00")) == 0 || bytes.HasPrefix(begin, []byte(headBegins)) ||
		bytes.HasPrefix([]byte(headBegins), begin)
	if n > headSize || !torn {
		return errors.New("it is no file of progress of firn import, or damaged; want another file, or one that does " +
			"not exist")
	}
	return p.file.Truncate(0) // no call has been made yet
}

func parseHead(line []byte) (h head, err error) {
	text, ok := strings.CutPrefix(string(line), headBegins)
	sum, text, cut := strings.Cut(text, " ")
	if text = strings.TrimRight(text, " \n"); !ok || !cut ||
		sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(text), checksums)) {
		return h, errors.New("no head")
	}
	return h, json.Unmarshal([]byte(text), &h)
}

// begin writes the head of a file that has none.
func (p *progress) begin(h head) error {
	p.head, p.size = h, headSize
	if p.file == nil {
		return nil
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	line := fmt.Appendf(nil, "%s%08x %s", headBegins, crc32.Checksum(text, checksums), text)
	if len(line) >= headSize {
		return fmt.Errorf("the names of job and sequencer have %d bytes more than fit", len(line)-headSize+1)
	}
	line = append(append(line, bytes.Repeat([]byte(" "), headSize-len(line)-1)...), '\n')
	if err := p.write(line, 0); err != nil {
		return err
	}
	if folder, err := os.Open(filepath.Dir(p.path)); err == nil { // Windows keeps a journal of names
		_ = folder.Sync()
		folder.Close()
	}
	return nil
}

// write has the disk confirm it.
func (p *progress) write(b []byte, at int64) error {
	_, err := p.file.WriteAt(b, at)
	if err == nil {
		err = p.file.Sync()
	}
	return err
}

// append adds the IDs of a call; none: the job has ended.
func (p *progress) append(ids []firn.ID) error {
	p.given += int64(len(ids))
	if len(ids) == 0 {
		p.ended = true
	} else {
		p.last = ids[len(ids)-1]
	}
	if p.file == nil {
		return nil
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(len(ids))<<32)
	b = packed.Append(b, ids...)
	binary.BigEndian.PutUint32(b[4:], p.checksum(p.size, b))
	if err := p.write(b, p.size); err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	p.size += int64(len(b))
	return nil
}

// checksum is that of a record at a place of this file.
func (p *progress) checksum(at int64, record []byte) uint32 {
	b := binary.BigEndian.AppendUint64([]byte(p.head.Token), uint64(at))
	return crc32.Update(crc32.Checksum(append(b, record[:4]...), checksums), checksums, record[recordHead:])
}

// readRecords finds out how far the progress is.
func (p *progress) readRecords() error {
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	if p.head.Batch < 1 {
		return fmt.Errorf("it has %d rows for a call; want 1 or more", p.head.Batch)
	}
	p.size = headSize
	r := p.reader(info.Size())
	ids, err := r.next()
	for ; err == nil; ids, err = r.next() {
		p.size = r.at
		p.given += int64(len(ids))
		if p.ended = len(ids) == 0; !p.ended {
			p.last = ids[len(ids)-1]
		}
	}
	if !errors.Is(err, errTorn) {
		return err
	}
	if rest := info.Size() - p.size; rest > recordHead+int64(p.head.Batch)*packed.Size || rest > 0 && p.ended ||
		p.given > p.head.Rows || p.ended && p.given < p.head.Rows {
		return fmt.Errorf("it is damaged at byte %d; want the file as it was, or another one, and a new job", p.size)
	}
	return p.file.Truncate(p.size)
}

// reader reads the records of a file of progress.
type reader struct {
	*progress
	in       *io.SectionReader
	at, size int64
	record   []byte
	ids      []firn.ID
}

// errTorn is returned after the last whole record.
var errTorn = errors.New("there is no whole record")

// reader returns what reads the records up to a size of the file.
func (p *progress) reader(size int64) *reader {
	return &reader{
		progress: p, in: io.NewSectionReader(p.file, headSize, size-headSize), at: headSize, size: size,
		record: make([]byte, recordHead+p.head.Batch*packed.Size), ids: make([]firn.ID, p.head.Batch),
	}
}

// next returns the IDs of the next record, until it is called again.
func (r *reader) next() ([]firn.ID, error) {
	if r.at+recordHead > r.size {
		return nil, errTorn
	}
	if _, err := io.ReadFull(r.in, r.record[:recordHead]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(r.record))
	length := recordHead + n*packed.Size
	if n > int64(len(r.ids)) || r.at+length > r.size {
		return nil, errTorn
	}
	if _, err := io.ReadFull(r.in, r.record[recordHead:length]); err != nil {
		return nil, err
	}
	ids := r.ids[:n]
	if r.checksum(r.at, r.record[:length]) != binary.BigEndian.Uint32(r.record[4:]) ||
		packed.Read(ids, r.record[recordHead:length]) != nil {
		return nil, errTorn
	}
	r.at += length
	return ids, nil
}

// check returns an error that says in what the file is about something else than wanted.
func (p *progress) check(want head) error {
	is := p.head
	for _, d := range []struct {
		what     string
		is, want any
	}{
		{"the sequencer", is.Sequencer, want.Sequencer},
		{"the job", is.Job, want.Job},
		{"the number of rows", is.Rows, want.Rows},
		{"the digest of the input", is.Input, want.Input},
		{"to use the next tick", is.Next, want.Next},
	} {
		if d.is != d.want {
			return fmt.Errorf("%s is of another import: %s is %v there, and %v here; want the same command and "+
				"input, or another file", p.path, d.what, d.is, d.want)
		}
	}
	return nil
}
