package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
)

const (
	lookBefore  = 100 * time.Millisecond // how often to report a node that has not been ready yet
	lookAfter   = time.Second            // and one that has
	extendEvery = 10 * time.Second       // how often to ask for more time to start
	extendBy    = 3 * extendEvery        // and how much
	leaveWithin = 15 * time.Second       // how long leaving the cluster and closing the store may take
)

// supervisor reports to systemd, which must run the node as a service with Type=notify.
//
// One goroutine sends all messages, and asks the node for its state each time. If the node hangs, the messages
// end: a start then fails by its timeout, and the watchdog kills a node that was ready. A node that is not ready
// only says why: a restart would not make it ready sooner.
type supervisor struct {
	tell     func(message string) error
	stand    func() (standing string, ready bool)
	draining <-chan struct{} // closed when the node begins to stop
	stopping time.Duration   // how long stopping may take
	watchdog time.Duration   // interval in which it expects a ping; 0: no watchdog
	log      *slog.Logger

	announced bool      // systemd knows that the node is ready
	ended     bool      // and that it is stopping
	told      string    // the status last sent
	toldAt    time.Time // when that was sent
	pinged    time.Time // time of the last ping
	extended  time.Time // when it last asked for more time
	failed    bool      // sending a message failed
}

// supervised reports the node's state to systemd, if that runs the node, until the function it returns is called.
func (n *Node) supervised() (end func()) {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("this node does not ping the watchdog of systemd", "err", err)
	}
	s := &supervisor{
		tell:  func(message string) error { _, err := daemon.SdNotify(false, message); return err },
		stand: n.standing, draining: n.service.Serving().Done(),
		stopping: n.config.DrainDelay + n.config.ShutdownTimeout + leaveWithin,
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

// standing returns the node's state for people. It takes the locks that calls take: a stuck node never answers.
func (n *Node) standing() (text string, ready bool) {
	_ = n.member.Value()
	state := peer.State{}
	if s, ok := n.member.Sequencer(peer.DefaultSequencer); ok {
		state = s.State()
	}
	err := n.service.Ready()
	switch {
	case err != nil:
		return "not ready: " + calls.Why(err), false
	case state.Phase == peer.Attached:
		return fmt.Sprintf("giving IDs under node ID %d", state.Node), true
	default:
		return "giving IDs", true
	}
}

// run reports the node's state until ctx ends.
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

// message returns the next message to send; empty: none.
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
