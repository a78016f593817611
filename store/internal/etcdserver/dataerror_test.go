package etcdserver

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// An error says which file it is about where that is known, and what to do; where there is no room, that is about no
// file.
func TestDataError(t *testing.T) {
	failed := func(path string, err error) error {
		return fmt.Errorf("opening: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	for _, tt := range []struct {
		cause error
		want  string
	}{
		{nil, `data directory "/data": it fails; ` + replace},
		{errors.New("why"), `data directory "/data": it fails: why; ` + replace},
		{
			failed("/data/member/snap/db", syscall.EIO),
			`data directory "/data": file member/snap/db: it fails: input/output error; ` + replace,
		},
		{
			failed("/elsewhere", syscall.EIO),
			`data directory "/data": file /elsewhere: it fails: input/output error; ` + replace,
		},
		{
			failed("/data/member/wal/0.tmp", syscall.ENOSPC),
			`data directory "/data": it fails: no space left on device; ` + makeRoom,
		},
		{
			failed("/data/member/wal/0.tmp", syscall.EDQUOT),
			`data directory "/data": it fails: disk quota exceeded; ` + makeRoom,
		},
	} {
		got := dataError("/data", "it fails", tt.cause)
		if got.Error() != tt.want {
			t.Errorf("of %v:\n%v\nwant\n%s", tt.cause, got, tt.want)
		}
	}
}
