package place

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// File is the name of the file in a data directory that says where the directory belongs.
const File = "place.json"

// Error is returned when a data directory does not belong where it is.
type Error struct {
	Dir string // the directory
	Was Place  // where it belongs
	Is  Place  // where it is
}

func (e *Error) Error() string {
	if Judge(e.Was, e.Is) == Another {
		return fmt.Sprintf("data directory %q: it belongs to %s, and this machine is %s; if the directory is a copy, "+
			"start this machine with an empty one: it gets its data from the others. "+
			"If this machine was %s before, delete nothing: move the directory away, and tell the others with firn "+
			"quorum replace %s %s; "+
			"or, if all have new addresses, stop them and make a new one from it: firn quorum restore %s --as %s "+
			"--data-dir DIR; see docs/quorum.md",
			e.Dir, e.Was.words(), e.Is.Address, e.Was.Address, e.Was.Address, e.Is.Address, e.Dir, e.Is.Address)
	}
	return fmt.Sprintf("data directory %q: it is a copy, or was moved: it belongs to %s, and is now %s; use the "+
		"original, or, if there is none that anybody uses, start once with --moved",
		e.Dir, e.Was.words(), e.Is.words())
}

// Enter has a data directory, given by an absolute path, belong to where it is, if Judge says that it does, or if it
// has no place yet. address is that of the machine of a quorum; empty: of a quorum of one. moved says that the
// directory was moved and nobody uses the original: it then belongs here, unless it is that of another machine of a
// quorum. The caller has locked the directory. An *Error is returned when it does not belong here; after any error it
// is as before.
func Enter(dir, address string, moved bool, log *slog.Logger) error {
	was, err := read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return write(dir, here(dir, address))
	}
	if err != nil {
		return err
	}
	is := here(dir, address)
	if err := is.identify(filepath.Join(dir, File)); err != nil {
		return err
	}
	switch v := Judge(was, is); {
	case v == Another || v == Copied && !moved:
		return &Error{Dir: dir, Was: was, Is: is}
	case v == Copied:
		log.Warn("the data directory was moved, says --moved: it belongs here from now on", "from", was.words(),
			"to", is.words())
	case moved:
		log.Warn("--moved is given, and the data directory was not moved; without the flag copies of it are refused",
			"data_dir", dir)
	}
	if is == was {
		return nil
	}
	return write(dir, is)
}

// Check returns the *Error that Enter would, and changes nothing. It is nil where that is not known, such as
// for a file that this user can't read.
func Check(dir, address string, moved bool) error {
	dir, err := filepath.Abs(dir) // as Enter gets it
	if err != nil {
		return nil //nolint:nilerr // Enter is not reached
	}
	was, err := read(dir)
	if err != nil {
		return nil //nolint:nilerr // Enter returns it
	}
	is := here(dir, address)
	if err := is.identify(filepath.Join(dir, File)); err != nil {
		return nil //nolint:nilerr // Enter returns it
	}
	if v := Judge(was, is); v == Another || v == Copied && !moved {
		return &Error{Dir: dir, Was: was, Is: is}
	}
	return nil
}

// Assign has a directory that nobody has used yet belong to one machine of a quorum.
func Assign(dir, address string) error { return write(dir, Place{Address: address}) }

// here returns where a directory is now; the file with the place is not known yet.
func here(dir, address string) Place {
	p := Place{
		Address: address, Path: dir,
		Machine: machineID("/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostid"),
	}
	if path, err := filepath.EvalSymlinks(dir); err == nil {
		p.Path = path
	}
	p.Host, _ = os.Hostname()
	return p
}

// machineID makes an ID from the first of the files that has one. The original is to be kept confidential.
func machineID(files ...string) string {
	for _, name := range files {
		text, err := os.ReadFile(name)
		id := strings.ReplaceAll(strings.TrimSpace(string(text)), "-", "")
		if err != nil || len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
			continue // such as "uninitialized", in an image
		}
		mac := hmac.New(sha256.New, []byte(id))
		_, _ = mac.Write([]byte("firn")) // never fails
		return fmt.Sprintf("%x", mac.Sum(nil)[:8])
	}
	return ""
}

func read(dir string) (p Place, err error) {
	path := filepath.Join(dir, File)
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	err = json.Unmarshal(text, &p)
	if err == nil && p == (Place{}) {
		err = errors.New("it says nothing")
	}
	if err != nil {
		return p, fmt.Errorf("the file %s says where the data directory belongs, and can't be read: %w; if the "+
			"directory is no copy, delete the file", path, err)
	}
	return p, nil
}

// write replaces the file, so that after a crash it is there as before or as it should be. If the place has a path, it
// gets the identity of the new file, which keeps it when it is renamed.
func write(dir string, p Place) (err error) {
	path := filepath.Join(dir, File)
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if p.Path != "" {
		err = p.identify(temporary)
	}
	if err == nil {
		var text []byte
		if text, err = json.MarshalIndent(p, "", "  "); err == nil {
			_, err = file.Write(append(text, '\n'))
		}
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("can't write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	in, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(in.Sync(), in.Close())
}
