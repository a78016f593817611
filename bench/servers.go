package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/load"
)

// process is a server that was started to be measured.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer  // to be read once it has ended
	ended   chan struct{} // closed then
	started time.Time
}

// await tries until it works, and returns how long that took since the start.
func (p *process) await(ctx context.Context, try func() error) (time.Duration, error) {
	const patience = time.Minute
	var err error
	for time.Since(p.started) < patience {
		if err = try(); err == nil {
			return time.Since(p.started), nil
		}
		select {
		case <-p.ended:
			return 0, fmt.Errorf("%s ended before it served: %s", p.command, &p.output)
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return 0, fmt.Errorf("%s did not serve within %v: %w", p.command, patience, err)
}

func (p *process) stop() {
	_ = p.command.Process.Signal(os.Interrupt)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// cpu returns the CPU time that the process and its children have used, in µs, to 10 ms; NaN where /proc does not tell.
func (p *process) cpu() float64 {
	pid := strconv.Itoa(p.command.Process.Pid)
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return math.NaN()
	}
	ticks := 0
	for _, pid := range append(strings.Fields(string(children)), pid) {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name may hold anything
		if err != nil || len(fields) < 13 {
			return math.NaN()
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		ticks += user + system
	}
	return float64(ticks) * 1e4
}

// contest holds servers that are measured beside each other.
type contest struct {
	dir    string // for their files
	firn   string // the program
	rivals []*rival
	all    []*process
	notes  string // name the servers that are not installed
}

// inContest runs a section with a contest, whose servers end with it.
func inContest(run func(context.Context, settings, *contest) ([]table, error)) func(context.Context,
	settings) ([]table, error) {
	return func(ctx context.Context, s settings) ([]table, error) {
		firn, err := s.build(ctx, filepath.Join("..", "cmd", "firn"))
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp("", "firn-bench-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		c := &contest{dir: dir, firn: firn}
		defer func() {
			for _, p := range c.all {
				p.stop()
			}
		}()
		return run(ctx, s, c)
	}
}

// build builds a program of this repository once. Its package is a path from the folder bench.
func (s settings) build(ctx context.Context, program string) (binary string, err error) {
	binary = filepath.Join(s.programs, filepath.Base(program))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	s.tell("building %s", filepath.Base(program))
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	command.Dir = program // whose module it is
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s, from the folder bench: %w: %s", program, err, out)
	}
	return binary, nil
}

// start starts a program in the contest's directory.
func (c *contest) start(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, program, args...), ended: make(chan struct{}), started: time.Now()}
	p.command.Dir = c.dir
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	c.all = append(c.all, p)
	return p, nil
}

// freeAddress returns an address that is free.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// dial returns a connection of internal/ops/load to a server. It is made when it is first used.
func dial(protocol, address string, a load.Access) (load.Connection, error) {
	p, err := load.ProtocolByName(protocol)
	if err != nil {
		return nil, err
	}
	u, err := p.Parse(address)
	if err != nil {
		return nil, err
	}
	return p.Connect(u, a)
}

// awaitID waits until a server gives IDs, and returns how long that took since its start.
func (p *process) awaitID(ctx context.Context, protocol, address string) (time.Duration, error) {
	conn, err := dial(protocol, address, load.Access{})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return p.await(ctx, func() error { return conn.Take(ctx, make([]firn.ID, 1)) })
}

// rival is a server in a contest.
type rival struct {
	*process
	name    string
	address string
	first   time.Duration // from its start to its first ID
	ask     askFunc
	rounds  []round
}

// askFunc asks a server over so many connections for about the given time.
type askFunc func(ctx context.Context, r *rival, connections int, d time.Duration) (round, error)

// round is what one round of one server brought. What is not known is NaN.
type round struct {
	answers        int64
	perSecond      float64
	p50, p99, p999 float64 // µs
	cpu            float64 // µs of the server
}

// add starts a server, and waits until it gives IDs. A server that is not installed is noted and left out.
func (c *contest) add(ctx context.Context, name, protocol string, ask askFunc,
	start func(address string) (*process, error),
) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	return c.addAt(ctx, address, name, protocol, ask, start)
}

// addAt does as add, at an address.
func (c *contest) addAt(ctx context.Context, address, name, protocol string, ask askFunc,
	start func(address string) (*process, error),
) error {
	p, err := start(address)
	if errors.Is(err, exec.ErrNotFound) {
		c.notes += fmt.Sprintf("\nNot here: %s. %v", name, err)
		return nil
	}
	var first time.Duration
	if err == nil {
		first, err = p.awaitID(ctx, protocol, address)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.rivals = append(c.rivals, &rival{process: p, name: name, address: address, first: first, ask: ask})
	return nil
}

// addFirn adds firn serve, with an empty data directory and the given flags.
func (c *contest) addFirn(ctx context.Context, name, protocol string, ask askFunc, flags ...string) error {
	return c.add(ctx, name, protocol, ask, func(address string) (*process, error) {
		return c.start(ctx, c.firn, append([]string{
			"serve", "--http-addr", "127.0.0.1:0", "--admin-addr", "none", "--data-dir", filepath.Join(c.dir, "data"),
			"--drain-delay", "0s",
			"--" + protocol + "-addr", address,
		}, flags...)...)
	})
}

// askInTurn asks all servers, round after round, each over so many connections.
func (c *contest) askInTurn(ctx context.Context, s settings, connections int) error {
	for _, r := range c.rivals {
		r.rounds = nil
	}
	for n := range s.loads {
		if n%max(1, s.loads/5) == 0 {
			s.tell("%s: round %d of %d over %d servers", counted(connections, "connection"), n+1,
				s.loads, len(c.rivals))
		}
		for i := range c.rivals { // another goes first each time
			r := c.rivals[(i+n)%len(c.rivals)]
			found, err := r.ask(ctx, r, connections, s.load)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", r.name, counted(connections, "connection"), err)
			}
			r.rounds = append(r.rounds, found)
		}
	}
	return ctx.Err()
}

// kept is a connection that stays open from round to round.
type kept struct{ load.Connection }

func (kept) Close() {}

// overLoad asks one server with internal/ops/load for batches of IDs. Its connections stay open, and each has had IDs
// before the first round begins.
func overLoad(batch int, connect func(address string, i int) (load.Connection, error)) askFunc {
	var open []load.Connection
	return func(ctx context.Context, r *rival, connections int, d time.Duration) (round, error) {
		if len(open) != connections {
			for _, c := range open {
				c.Close()
			}
			open = make([]load.Connection, connections)
			for i := range open {
				var err error
				if open[i], err = connect(r.address, i); err != nil {
					return round{}, err
				}
				if err := open[i].Take(ctx, make([]firn.ID, batch)); err != nil {
					return round{}, err
				}
			}
		}
		before := r.cpu()
		run := load.New(load.Plan{
			Connect:     func(i int) (load.Connection, error) { return kept{open[i]}, nil },
			Connections: connections, Batch: batch, Duration: d, Memory: load.NoMemory,
		})
		if err := run.Do(ctx); err != nil {
			return round{}, err
		}
		got := run.Result()
		if len(got.Errors) > 0 {
			return round{}, fmt.Errorf("%s: %s", got.Errors[0].Code, got.Errors[0].Example)
		}
		µs := func(percent float64) float64 { return got.Latency.At(percent).Seconds() * 1e6 }
		return round{got.Calls, float64(got.Calls) / got.Took.Seconds(), µs(50), µs(99), µs(99.9), r.cpu() - before},
			ctx.Err()
	}
}

// median is that of the rounds.
func (r *rival) median(of func(round) float64) float64 {
	var all []float64
	for _, one := range r.rounds {
		all = append(all, of(one))
	}
	return median(all)
}

func perSecond(r round) float64 { return r.perSecond }

// ratioTo is the median over the rounds of the answers per second to those of another server.
func (r *rival) ratioTo(other *rival) float64 {
	var all []float64
	for i, one := range r.rounds {
		all = append(all, one.perSecond/other.rounds[i].perSecond)
	}
	return median(all)
}

// cpuPerAnswer is the CPU time of the server over all rounds, in µs: the clock is too coarse for one round.
func (r *rival) cpuPerAnswer() float64 {
	var cpu, answers float64
	for _, one := range r.rounds {
		cpu, answers = cpu+one.cpu, answers+float64(one.answers)
	}
	return cpu / answers
}
