//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// sequencers is where the named sequencers are.
const sequencers = "/api/v1/sequencers"

// sequencer is what a node says of one.
type sequencer struct {
	Definition json.RawMessage
	Created    int64
	Capacity   int64
	Nodes      map[int64]string
	Waiting    []string
	Here       struct{ State string }
}

func (n *node) sequencer(name string) (s sequencer, err error) {
	_, err = n.call(http.MethodGet, sequencers+"/"+name, "", &s)
	return s, err
}

// create creates a sequencer; the fields of its definition are such as "nodes":2.
func (n *node) create(name, fields string, into any) (int, error) {
	return n.call(http.MethodPost, sequencers, fmt.Sprintf(`{"name":%q,%s}`, name, fields), into)
}

// mustCreate creates one that is not there.
func (n *node) mustCreate(name, fields string) {
	n.t.Helper()
	if status, err := n.create(name, fields, nil); status != http.StatusCreated {
		n.t.Fatalf("%s: creating %s with %s: %d, %v", n.name, name, fields, status, err)
	}
}

// destroyed is the answer to who destroyed a sequencer.
type destroyed struct {
	Destroyed bool
	Until     *time.Time
	Message   string
}

func (n *node) destroy(name string) (status int, d destroyed, err error) {
	status, err = n.call(http.MethodDelete, sequencers+"/"+name, "", &d)
	return status, d, err
}

// attach has the node attach; nil also when it then waits in line.
func (n *node) attach(name string) error {
	_, err := n.call(http.MethodPost, sequencers+"/"+name+"/attach", "", nil)
	if codeOf(err) == "waiting" {
		return nil
	}
	return err
}

func (n *node) mustAttach(name string) {
	n.t.Helper()
	if err := n.attach(name); err != nil {
		n.t.Fatalf("%s: attaching to %s: %v", n.name, name, err)
	}
}

func (n *node) detach(name string) error {
	_, err := n.call(http.MethodPost, sequencers+"/"+name+"/detach", "", nil)
	return err
}

// codeOf is the code of an answer that tells of an error, and empty for others.
func codeOf(err error) string {
	var r *refused
	if errors.As(err, &r) {
		return r.code
	}
	return ""
}

// fleet starts nodes, and returns once they are one cluster and give IDs.
func fleet(t *testing.T, many int, args ...string) []*node {
	t.Helper()
	var all []*node
	for i := range many {
		all = append(all, serve(t, fmt.Sprint("node ", i), args...))
	}
	l := new(ledger)
	for _, n := range all {
		n.ready(t, l)
	}
	becomeOneRing(t, ttl+slack, all)
	return all
}

// sameValue waits until all nodes show the same value of the cluster.
func sameValue(t *testing.T, nodes []*node) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		different := ""
		var first json.RawMessage
		for _, n := range nodes {
			var value json.RawMessage
			if _, err := n.call(http.MethodGet, "/api/v1/cluster/value", "", &value); err != nil {
				different = fmt.Sprintf("%s: %v", n.name, err)
			}
			if first == nil {
				first = value
			}
			if string(value) != string(first) {
				different = fmt.Sprintf("%s shows %s\n%s shows %s", nodes[0].name, first, n.name, value)
			}
		}
		if different == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nodes do not come to agree: %s", different)
		}
	}
}

// eventually waits until something is as it must become.
func eventually(t *testing.T, look func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
