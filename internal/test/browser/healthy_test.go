package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/testenv"
)

// record has the page note every text of its line of problems, and how many of the nodes its rate is of, in the order
// in which they appear.
const record = `new MutationObserver(() => {
	const seen = window.seen ??= {}, note = sel => (seen[sel] ??= new Set()).add(text(sel));
	note("#problems"), note("#members-note"), note("#rate-note");
}).observe(document.body, {childList: true, subtree: true, characterData: true})`

// recorded are the texts of an element that were noted.
func recorded(css string) string {
	return fmt.Sprintf(`[...(window.seen?.[%q] ?? [])].join("; ")`, css)
}

// A cluster in which nothing goes wrong has no problems: not between two pulses, not while nodes come, and not while
// they leave in order. It has the timing of nodes that were told nothing else, so this takes two minutes.
func TestHealthyClusterLooksHealthy(t *testing.T) {
	testenv.Slow(t)
	l := live(t, local, "host-a", "host-b", "host-c", "host-d", "host-e")
	l.give(peer.DefaultSequencer, 10, 100*time.Millisecond)
	p := &page{t, openFor(t, 2*time.Minute+patience)}
	p.visit(l.url, 1440)
	p.wait(`text("#rate-note")`, "of the whole cluster")
	p.wait(`text("#members-note")`, "all ready")
	p.js(record)
	began := time.Now()
	for ; time.Since(began) < time.Minute; time.Sleep(time.Second) { // nothing happens
		p.wait(`text("#problems")`, "Nothing is wrong.")
	}
	if texts := p.js(recorded("#members-note")); texts != "" && texts != "all ready" {
		t.Errorf("of the members it was said: %s", texts)
	}
	if texts := p.js(recorded("#rate-note")); texts != "" && texts != "of the whole cluster" {
		t.Errorf("of the rate it was said: %s", texts)
	}
	for i := 0; time.Since(began) < 2*time.Minute; i++ {
		b := l.join(fmt.Sprintf("host-new-%d", i))
		l.attach(len(l.members)-1, peer.DefaultSequencer, cluster.Define(firn.Default))
		p.wait(`text("#members-count")`, "6")
		p.wait(state(b.ID()), "ready")
		b.Leave()
		p.wait(`text("#members-count")`, "5")
	}
	if texts := p.js(recorded("#problems")); texts != "Nothing is wrong." {
		t.Errorf("the problems were: %s", texts)
	}
}
