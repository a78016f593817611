package etcdserver

import (
	"strings"
	"testing"
)

// What raft says of a log that is not what was confirmed is told apart from damage.
func TestSetBackIsNoDamage(t *testing.T) {
	const lost = "tocommit(61) is out of range [lastIndex(47)]. Was the raft log corrupted, truncated, or lost?"
	e := dataError("dir", "etcd can't go on: "+lost, nil)
	if !e.SetBack() || e.Damaged() || !strings.Contains(e.Error(), "older than what this machine had confirmed") ||
		!strings.Contains(e.Error(), lost) {
		t.Errorf("%v: set back: %v, damaged: %v", e, e.SetBack(), e.Damaged())
	}
	const other = "entry 48 conflict with committed entry [committed(61)]"
	e = dataError("dir", "etcd can't go on: "+other, nil)
	if e.SetBack() || e.Damaged() || !strings.Contains(e.Error(), "start again: it compares its log") {
		t.Errorf("%v: set back: %v, damaged: %v", e, e.SetBack(), e.Damaged())
	}
	if e = dataError("dir", "etcd can't go on: the page is damaged", nil); e.SetBack() || !e.Damaged() {
		t.Errorf("%v: set back: %v, damaged: %v", e, e.SetBack(), e.Damaged())
	}
}
