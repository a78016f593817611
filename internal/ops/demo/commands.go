package demo

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/service/calls"
)

// The commands of a demo. Each returns what it did, what will follow, and what to try next; they run one at a
// time.

// mostOffset is the largest offset of a clock.
const mostOffset = 24 * time.Hour

func notNow(format string, args ...any) error { return calls.Input(fmt.Errorf(format, args...)) }

func (d *demo) kill(h *host, _ *http.Request) (string, error) {
	p := h.running()
	if p == nil {
		return "", notNow("node %d is not running; firn demo start %[1]d starts it", h.number)
	}
	d.say("node %d is killed", h.number)
	d.keepSecret(h)
	p.kill()
	text := fmt.Sprintf("Node %d is gone, as after kill -9: it told nobody, and gave nothing back.\n", h.number)
	if d.quorum != nil {
		return text + d.left(h), nil
	}
	if d.runs() == 0 {
		return text + "No node is running, so every call fails.\n" +
			d.then("Start one:", fmt.Sprintf("demo start %d", h.number)), nil
	}
	return text + fmt.Sprintf(`Callers use the others. Within %v its session ends, and the node that watches it takes
it out of the cluster. The next owner of its node ID begins after the last instant that
it had reserved.
`, console.Brief(d.config.TTL)) +
		d.then("See who is a member:", "cluster status") + d.then("Bring it back:",
		fmt.Sprintf("demo start %d", h.number)), nil
}

// left says what the loss of a machine of the quorum means, and what to try next.
func (d *demo) left(h *host) string {
	back := fmt.Sprintf("demo start %d", h.number)
	runs, of := d.runs(), len(d.hosts)
	switch {
	case runs == 0:
		return "No node is running, so every call fails. Their data is on the disk.\n" + d.then("Bring it back:", back)
	case d.quorum.majority(runs):
		return fmt.Sprintf(`%d of %d machines are a majority, and keep the store: one of them leads within seconds.
Callers use the other nodes, and none notices.
`, runs, of) + d.then("Look at the machines:", "quorum status") + d.then("Bring it back:", back)
	default:
		return fmt.Sprintf(`%d of %d machines is no majority: nothing can be written, and so nothing is written twice.
IDs still flow from the time that is reserved, for up to %v. Then calls are answered 503,
until a majority is back.
`, runs, of, console.Brief(d.config.Window)) +
			d.then("See how things are:", "demo status") + d.then("Bring it back:", back)
	}
}

func (d *demo) start(h *host, _ *http.Request) (string, error) {
	if h.running() != nil {
		return "", notNow("node %d is running already", h.number)
	}
	if err := h.start(); err != nil {
		return "", err
	}
	d.keepSecret()
	d.say("node %d is started", h.number)
	if d.quorum != nil {
		return fmt.Sprintf("Node %d runs again, at %s. Its data is as old as its end: once there is a\n"+
			"majority, it gets the rest from the others, and joins as a new member.\n", h.number, h.url) +
			d.then("See how things are:", "demo status"), nil
	}
	return fmt.Sprintf("Node %d runs again, at %s. It joins as a new member, and takes\na free node ID.\n",
		h.number, h.url) +
		d.then("See who is a member:", "cluster status"), nil
}

func (d *demo) pause(h *host, _ *http.Request) (string, error) {
	p := h.running()
	if p == nil {
		return "", notNow("node %d is not running; firn demo start %[1]d starts it", h.number)
	}
	if d.quorum != nil {
		return "", notNow("node %d keeps the store, and can't be paused alone in one process; firn demo kill %[1]d "+
			"kills it", h.number)
	}
	if !p.pause(true) {
		return "", notNow("node %d is paused already; firn demo resume %[1]d resumes it", h.number)
	}
	d.say("node %d is paused", h.number)
	return fmt.Sprintf(`Node %d hangs, as after kill -STOP: neither callers nor the store hear from it. Callers
who wait too long ask another node. Within %v the others take it out of the cluster, and
it does not know.
`, h.number, console.Brief(d.config.TTL)) +
		d.then("See who is a member:", "cluster status") + d.then("Resume it:",
		fmt.Sprintf("demo resume %d", h.number)), nil
}

func (d *demo) resume(h *host, _ *http.Request) (string, error) {
	p := h.running()
	if p == nil || !p.pause(false) {
		return "", notNow("node %d is not paused", h.number)
	}
	d.say("node %d runs on", h.number)
	return fmt.Sprintf(`Node %d runs on. Its first IDs are from time that it had reserved before, and that no
other node could use. If the others took it out, it joins again.
`, h.number) + d.then("See who is a member:", "cluster status"), nil
}

func (d *demo) stepClock(h *host, r *http.Request) (string, error) {
	step, err := d.step(r, h)
	if err != nil {
		return "", err
	}
	total := time.Duration(h.offset.Load())
	d.say("the clock of node %d is set by %s", h.number, console.Signed(step))
	text := fmt.Sprintf("The clock of node %d was set by %s, and is now %s.\n", h.number, console.Signed(step),
		wrongBy(total))
	p := h.running()
	if p == nil {
		return text + "It is not running, and will see that when it starts.\n" +
			d.then("Start it:", fmt.Sprintf("demo start %d", h.number)), nil
	}
	take := d.then("Take IDs from it, and see their time:",
		fmt.Sprintf("id -n 3 --server %s | %s decode", h.url, d.self))
	back := d.then("Look at it:", "demo status") + d.then("Set it back:",
		fmt.Sprintf("demo step-clock %d %s", h.number, console.Signed(-step)))
	switch v := d.judge(h); {
	case v.Out():
		return text + fmt.Sprintf(`It is %s, which agree. So the node uses up the time that it has
reserved, at most %v, and is then not ready until its clock is right. Callers use the
others, and notice nothing.
`, v, console.Brief(d.config.Window)) + back, nil
	case v.Kind == clocks.Tied:
		return text +
			"The clocks differ, and no majority agrees: nobody knows who is right. All nodes are served,\nand warn.\n" +
			back, nil
	}
	if ahead := total - time.Until(time.Unix(0, p.clock.Now())); ahead < -time.Second { // by the node's own clock
		return text +
			"The node's time never goes back: it runs an eighth slower until the clock has caught up. Its\n" +
			"IDs still ascend.\n" + take, nil
	}
	return text + "No majority contradicts it, and the node follows. Its IDs still ascend, and none comes twice.\n" +
		take, nil
}

func (d *demo) stepClocks(_ *host, r *http.Request) (string, error) {
	step, err := d.step(r, d.hosts...)
	if err != nil {
		return "", err
	}
	d.say("all clocks are set by %s", console.Signed(step))
	text := fmt.Sprintf("All clocks were set by %s, as by a common time server. They agree as before, so nobody is\n"+
		"refused. ", console.Signed(step))
	if step > 0 {
		text += "The nodes follow within seconds, and callers notice nothing.\n"
	} else {
		text += "The nodes' time never goes back: it runs an eighth slower until the clocks\n" +
			"have caught up. IDs still ascend.\n"
	}
	return text + d.then("Take IDs, and see their time:",
		fmt.Sprintf("id -n 3 --server %s | %s decode", d.hosts[0].url, d.self)) +
		d.then("Set them back:", fmt.Sprintf("demo step-clock %s %s", All, console.Signed(-step))), nil
}

// step sets clocks by the step of a request, and returns it. If one would be too wrong then, none is set.
func (d *demo) step(r *http.Request, hosts ...*host) (time.Duration, error) {
	step, err := time.ParseDuration(r.FormValue("step"))
	if err != nil {
		return 0, calls.Input(err)
	}
	for _, h := range hosts {
		if total := time.Duration(h.offset.Load()) + step; total.Abs() > mostOffset {
			return 0, notNow("the clock of node %d would be wrong by %s; want at most %v", h.number,
				console.Signed(total), console.Brief(mostOffset))
		}
	}
	for _, h := range hosts {
		h.offset.Add(int64(step))
	}
	return step, nil
}

// judge judges the clock of a host, as its node will by those of the other nodes.
func (d *demo) judge(h *host) clocks.Verdict {
	var others []clocks.Reading
	for _, other := range d.hosts {
		if other != h && other.running() != nil {
			ahead := time.Duration(other.offset.Load() - h.offset.Load())
			others = append(others, clocks.Reading{Least: ahead, Most: ahead})
		}
	}
	return clocks.Judge(others)
}

func wrongBy(total time.Duration) string {
	switch {
	case total == 0:
		return "right"
	case total < 0:
		return console.Brief(-total) + " behind"
	default:
		return console.Brief(total) + " ahead"
	}
}

func (d *demo) stopStore(*host, *http.Request) (string, error) {
	if d.quorum != nil {
		return "", notNow("the nodes keep the store themselves; firn demo kill stops it, once for each node of a " +
			"majority")
	}
	if !d.reach(false) {
		return "", notNow("the store is stopped already; firn demo start-store brings it back")
	}
	d.say("no node can reach the store")
	window := d.config.Window
	return fmt.Sprintf(`No node can reach the store, and IDs still flow: each node has reserved time, of which it
has between %v and %v left. Then it answers 503.
`, console.Brief((window*2/3).Round(window/10)), console.Brief(window)) +
		d.then("Look at them:", "demo status") + d.then("Bring it back:", "demo start-store"), nil
}

func (d *demo) startStore(*host, *http.Request) (string, error) {
	if !d.reach(true) {
		return "", notNow("the store is not stopped")
	}
	d.say("the nodes reach the store again")
	return fmt.Sprintf(`The nodes reach the store again. If they were without it for more than %v, their sessions
have ended, and they join again by themselves within seconds.
`, console.Brief(d.config.TTL)) + d.then("See who is a member:", "cluster status"), nil
}

// reach connects all nodes to the store, or disconnects them. It reports whether that changed anything.
func (d *demo) reach(within bool) bool {
	if d.stopped.Swap(!within) == !within {
		return false
	}
	for _, h := range d.hosts {
		if p := h.running(); p != nil {
			p.reach()
		}
	}
	return true
}

// runs returns the number of running nodes.
func (d *demo) runs() (n int) {
	for _, one := range d.hosts {
		if one.running() != nil {
			n++
		}
	}
	return n
}

// then returns a command to try next, and what it is for.
func (d *demo) then(what, command string) string {
	return what + "\n" + tryLine(d.command(command))
}

// tryLine formats a command to try, as tests look for it.
func tryLine(command string) string { return "    " + command + "\n" }

// command returns a firn command, as the user can type it where the demo was started.
func (d *demo) command(text string) string {
	first, _, _ := strings.Cut(text, " ")
	switch {
	case d.admin != "http://"+DefaultAdminAddr &&
		slices.Contains([]string{"demo", "cluster", "sequencer", "quorum"}, first):
		text += " --admin " + d.admin
	case d.hosts[0].url != "http://"+DefaultHTTPAddr && first == "id" && !strings.Contains(text, "--server"):
		text += " --server " + d.hosts[0].url
	}
	return d.self + " " + text
}
