package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// File is a journal to check. Several members may have written it one after the other.
type File struct {
	Name string // for messages
	io.Reader
}

// place is where a line is.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// read calls each with the lines of a file. The last line of a run may be cut off, as when the process was killed while
// it wrote. An error is returned when the file can't be read, when another line is no line of a journal, or when each
// returns one.
func (f File) read(each func(place, Line) error) error {
	lines := bufio.NewReader(f)
	var cut error // about a line that may have been the last of its run
	for at := (place{f.Name, 1}); ; at.line++ {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF { // nothing, or a line that was cut off
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		var l Line
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&l)
		switch {
		case cut != nil && l.Do != Begin:
			return cut
		case at.line == 1 && err == nil && l.Do != Begin:
			err = fmt.Errorf("it is %q; want %q first", l.Do, Begin)
		case err == nil && l.Do == Given && !l.sane():
			err = fmt.Errorf("%d IDs from %d to %d", l.Count, l.First, l.Last)
		case l.Do == Begin && l.Journal != Version:
			return fmt.Errorf("%v: a journal of version %d; want version %d", at, l.Journal, Version)
		}
		cut = nil
		if err != nil {
			if cut = fmt.Errorf("%v: not a line of a journal: %w: %.80q", at, err, text); at.line == 1 {
				return cut
			}
			continue
		}
		if err := each(at, l); err != nil {
			return err
		}
	}
}

// sane reports whether there can be such IDs.
func (l Line) sane() bool {
	gaps := l.Count - 1
	return l.First >= 0 && l.Last >= l.First && gaps >= 0 && gaps <= l.Last-l.First &&
		(l.Last-l.First)%max(gaps, 1) == 0
}
