package browser_test

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum"
)

// changing is a quorum whose state changes.
type changing struct {
	*servertest.Quorum
	state atomic.Pointer[quorum.Status]
}

func (c *changing) Status(context.Context) quorum.Status { return *c.state.Load() }

// The page shows who keeps the data: also while the node waits for them and knows nothing else.
func TestQuorum(t *testing.T) {
	testenv.Slow(t)
	f := servertest.Waiting(t, "no answer")
	q := &changing{Quorum: servertest.ThreeMachines()}
	apart := q.State
	apart.Majority, apart.Self, apart.Waiting = false, "ids-3:7420",
		"nobody answers; waiting for ids-1:7420 (connection refused), ids-2:7420 (no answer)"
	apart.Machines = []quorum.Machine{
		{Address: "ids-1:7420", Err: "connection refused"},
		{Address: "ids-2:7420", Err: "no answer"},
		{Address: "ids-3:7420", Role: quorum.Empty, Version: "v1.4.0", Etcd: "3.7.3", Doing: "nobody answers"},
	}
	q.state.Store(&apart)
	s := calls.New(f, calls.Options{Quorum: q})
	served := httptest.NewServer(administer(s, local, ui.Options{}))
	defer served.Close()
	defer served.CloseClientConnections()
	defer s.Drain()
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	p.visit(served.URL, 1440)
	p.wait(`text("#ready")`, "Not ready")
	p.wait(`text("#quorum-note")`, "1 of 3 machines can be reached from here.")
	p.waitFor(`text("#quorum-why").startsWith("This node waits: nobody answers; waiting for ids-1:7420")`)
	p.wait(`document.querySelectorAll("#machines [data-state=bad]").length`, "2")
	p.waitFor(`text("[data-machine='ids-1:7420']").includes("unreachable") && ` +
		`text("[data-machine='ids-1:7420']").includes("connection refused")`)
	p.waitFor(`text("[data-machine='ids-3:7420'] .badges").includes("emptythis machine")`)
	p.wait(`["members-count", "members-note", "rate-note", "no-sequencers"].map(id => text("#" + id)).join(", ")`,
		"–, not known, not known, None is known at present.")
	p.pictures("dashboard-quorum-waits")

	q.state.Store(&q.State)
	p.wait(`text("#quorum-note")`, "2 of 3 machines can be reached from here.")
	p.wait(`text("#quorum-why")`, "")
	p.wait(`text("[data-machine='ids-1:7420'] .badges")`, "leadervoterthis machine")
	p.wait(`text("[data-machine='ids-2:7420'] dl")`,
		"Behind345 entriesData2.0 MiB, log 4.0 MiBDisk sync210 msClock250 ms behind this node’sVersionv1.4.0, etcd "+
			"3.7.3Statuscatches up")
	p.wait(`text("[data-machine='ids-3:7420'] dl")`, "Errorconnection refusedBehindat least 1\u202f345 entries")
	p.pictures("dashboard-quorum")

	lost := q.State
	lost.Majority = false
	q.state.Store(&lost)
	p.waitFor(`text("#problems").includes("1 of 2 machines is down (ids-3)")`)
	w.quiet(t, served.URL, "status of 503") // of calls for the log, which is not there
}

// The page shows a quorum only if the node has one.
func TestNoQuorum(t *testing.T) {
	testenv.Slow(t)
	l := live(t, local, "host-a")
	p := &page{t, open(t)}
	p.visit(l.url, 1440)
	p.wait(`text("#members-count")`, "1")
	p.wait(`$("#quorum").hidden`, "true")
}
