package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/firn-id/firn/member"
)

const (
	lookBefore  = 100 * time.Millisecond // how often systemd is told of a node that has not been ready yet
	lookAfter   = time.Second            // and of one that has
	extendEvery = 10 * time.Second       // how often more time is asked for to start
	extendBy    = 3 * extendEvery        // and how much
	leaveWithin = 15 * time.Second       // how long it may take to leave the cluster and to close the store
)

// supervisor reports to systemd, which must run the node as a service of Type=notify.
//
// One goroutine sends all messages, and asks the node for its state each time. If the node is stuck and never answers, the
// messages end: a start then fails by its timeout, and the watchdog kills a node that was ready. A node that is not ready only
// says why: a restart would not make it ready sooner.
type supervisor struct {
	tell     func(message string) error
	stand    func() (standing string, ready bool)
	draining <-chan struct{} // closed when the node begins to stop
	stopping time.Duration   // how long that may take
	watchdog time.Duration   // within which it must be pinged; 0: there is none
	log      *slog.Logger

	announced bool      // it was told that the node is ready
	ended     bool      // and that it stops
	told      string    // how the node stood when that was last told
	toldAt    time.Time // when that was
	pinged    time.Time // when the watchdog was last pinged
	extended  time.Time // when more time was last asked for
	failed    bool      // a message could not be sent
}

// supervised has systemd told how the node is, if it wants to know, until the function it returns is called.
func (n *Node) supervised() (end func()) {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("the watchdog of systemd is not pinged", "err", err)
	}
	s := &supervisor{
		tell:  func(message string) error { _, err := daemon.SdNotify(false, message); return err },
		stand: n.standing, draining: n.service.Serving().Done(), stopping: n.config.DrainDelay + n.config.ShutdownTimeout + leaveWithin,
		watchdog: watchdog, log: n.log,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx)
	}()
	return func() {
		cancel()
		select {
		case <-done:
		case <-time.After(lookAfter): // the node is stuck
		}
	}
}

// standing is how the node is, for people. It takes the locks that callers need: a node that is stuck never answers.
func (n *Node) standing() (text string, ready bool) {
	_ = n.member.Value()
	state := member.State{}
	if s, ok := n.member.Sequencer(member.DefaultSequencer); ok {
		state = s.State()
	}
	err := n.service.Ready()
	switch {
	case err != nil:
		return "not ready: " + Why(err), false
	case state.Phase == member.Attached:
		return fmt.Sprintf("giving IDs under node ID %d", state.Node), true
	default:
		return "giving IDs", true
	}
}

// run tells how the node is until ctx ends.
func (s *supervisor) run(ctx context.Context) {
	for {
		s.say(s.message(time.Now()))
		wait := lookAfter
		if !s.announced {
			wait = lookBefore
		}
		if s.watchdog > 0 {
			wait = min(wait, s.watchdog/4)
		}
		draining := s.draining
		if s.ended {
			draining = nil // it stays closed
		}
		select {
		case <-ctx.Done():
			s.say(s.message(time.Now()))
			return
		case <-draining:
		case <-time.After(wait):
		}
	}
}

// message is what is to be told now; empty: nothing.
func (s *supervisor) message(now time.Time) string {
	var lines []string
	add := func(line string) { lines = append(lines, line) }
	text, ready := s.stand()
	if ready && !s.announced {
		s.announced = true
		add(daemon.SdNotifyReady)
	}
	select {
	case <-s.draining:
		if !s.ended {
			s.ended = true
			add(daemon.SdNotifyStopping)
			add(extend(s.stopping))
		}
	default:
	}
	if text != s.told && (len(lines) > 0 || now.Sub(s.toldAt) >= lookAfter) {
		s.told, s.toldAt = text, now
		add("STATUS=" + strings.ReplaceAll(text, "\n", " "))
	}
	if !s.announced && !s.ended && now.Sub(s.extended) >= extendEvery {
		s.extended = now
		add(extend(extendBy))
	}
	if s.watchdog > 0 && now.Sub(s.pinged) >= s.watchdog/2 {
		s.pinged = now
		add(daemon.SdNotifyWatchdog)
	}
	return strings.Join(lines, "\n")
}

// extend asks for more time to start or to stop.
func extend(by time.Duration) string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", by.Microseconds()) }

func (s *supervisor) say(message string) {
	if message == "" {
		return
	}
	if err := s.tell(message); err != nil && !s.failed {
		s.failed = true
		s.log.Warn("can't report to systemd", "err", err)
	}
}
