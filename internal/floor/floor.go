// Package floor has the key of a store that says before which instant nobody may use a node ID,
// because the store may not know how far node IDs were used. Members obey it, and they or the store
// write it.
package floor

import (
	"encoding/json"
	"time"

	"github.com/firn-id/firn/store"
)

// Key is the key of the store.
const Key = "floor"

// What the members of a cluster do unless told otherwise.
const (
	Window = 30 * time.Second // how far ahead of its clock a member reserves time
	Skew   = 10 * time.Second // by how much clocks may differ
)

// MaxWindow is the longest window. After a loss of data everybody waits for the longest one.
const MaxWindow = time.Hour

// Floor is what the key holds.
type Floor struct {
	From time.Time `json:"from"` // the earliest instant of use of any node ID; zero: the fences' floors alone count
	By   string    `json:"by"`   // who put it
	Why  string    `json:"why"`
}

// Above returns a floor for clusters whose members may have used any instant up to last, by this clock: their clocks
// may differ by the accepted skew.
func Above(last time.Time) time.Time { return last.Add(Skew) }

// Put returns the operation that writes the floor.
func (f Floor) Put() (store.Op, error) {
	value, err := json.Marshal(f)
	return store.Put(Key, value), err
}
