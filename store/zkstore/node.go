package zkstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// The nodes below the chroot.
const (
	keys       = "/keys"       // a node for each key, by its name
	marks      = "/marks"      // a node for each node of a key, see node.mark
	log        = "/log"        // a sequential node for each entry: its ID, "-" and ten digits
	ids        = "/ids"        // a node for each entry, by its ID
	pieces     = "/pieces"     // the values of checkpoints
	checkpoint = "/checkpoint" // where the checkpoint is, and which pieces it has
	revision   = "/revision"   // written by each transaction
)

// maxRequest is the most that a server takes at once unless it was told otherwise (jute.maxbuffer).
const maxRequest = 0xfffff

// maxNodes is of how many keys a client remembers what it last knew.
const maxNodes = 1 << 14

// node is the node of a key as it was at one moment. The zero value is that of an absent key.
//
// A condition names the transaction that wrote the key last, while ZooKeeper compares how often the node was written
// since it was made. Both say the same about one node. But a node that is made again counts from zero again, so that
// it could be taken for the one before. Therefore each node of a key has a mark: a second node whose name is used
// once, and that is made and removed with it, even when a session ends. A condition demands both: the number of
// writes, and the mark.
type node struct {
	version store.Version // the transaction that wrote it last
	writes  int32         // how often it was written since it was made
	mark    string        // of this node
	birth   string        // of the first node since the key was absent: it stays when the key changes its session
	owner   int64         // the session that it ends with; zero: none
}

// The record of a key: a byte that says how it is written, its mark, its birth, and the value.
const (
	recordFormat = 'a'
	markLength   = 26
	recordHeader = 1 + 2*markLength
)

var errRecord = errors.New("is not a node of firn's")

// newMark returns a name that nobody else uses.
func newMark() string { return fresh.Text() }

func record(mark, birth string, value []byte) []byte {
	r := make([]byte, 0, recordHeader+len(value))
	r = append(r, recordFormat)
	r = append(r, mark...)
	r = append(r, birth...)
	return append(r, value...)
}

// parse reads what a server answered about the node of a key.
func parse(reply wire.Reply) (n node, value []byte, err error) {
	switch {
	case reply.Err == wire.ErrNoNode:
		return node{}, nil, nil
	case len(reply.Data) < recordHeader || reply.Data[0] != recordFormat:
		return node{}, nil, fmt.Errorf("%w: it %w", store.ErrRefused, errRecord)
	}
	n = node{
		version: store.Version(reply.Stat.Modified), writes: reply.Stat.Version, owner: reply.Stat.Owner,
		mark: string(reply.Data[1 : 1+markLength]), birth: string(reply.Data[1+markLength : recordHeader]),
	}
	return n, reply.Data[recordHeader:], nil
}

// name is a key as the name of a node: it has no slash, and is not "." or "..".
func name(key string) string {
	escaped := url.PathEscape(key)
	if key == "." || key == ".." {
		return strings.ReplaceAll(key, ".", "%2E")
	}
	return escaped
}

// keyOf is the key of a name; false when it is none.
func keyOf(name string) (string, bool) {
	key, err := url.PathUnescape(name)
	return key, err == nil
}

func (s *Store) path(key string) string      { return s.root + keys + "/" + name(key) }
func (s *Store) markPath(mark string) string { return s.root + marks + "/" + mark }

// recall returns what was last known of a key.
func (s *Store) recall(key string) (node, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.nodes[key]
	return n, known
}

// remember notes what is known of a key now.
func (s *Store) remember(key string, n node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.nodes) >= maxNodes {
		clear(s.nodes)
	}
	s.nodes[key] = n
}
