//go:build linux

package scale

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// role, in the environment, has the test binary be another process of TestSimulated. The first line of its input is
// what it is told, as JSON; it ends with its input.
const role = "FIRN_SCALE_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch as := os.Getenv(role); as {
	case "store":
		err = beStore()
	case "member":
		err = beMember()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "the %s: %v\n", os.Getenv(role), err)
		os.Exit(1)
	}
}

// told is what a process is told.
type told struct {
	Address string // of the store
	Dir     string // with the key, and the data of the store
	Window  time.Duration
}

func (w told) config(self string) quorum.Config {
	return quorum.Config{Machines: []string{w.Address}, Self: self, KeyFile: filepath.Join(w.Dir, "key")}
}

func readTold() (w told, in *bufio.Scanner, err error) {
	in = bufio.NewScanner(os.Stdin)
	in.Scan()
	return w, in, json.Unmarshal(in.Bytes(), &w)
}

// client is a client of a store in another process.
type client struct {
	quorum.Store
	quorum *quorum.Quorum
}

func (w told) connect(ctx context.Context) (client, error) {
	q, err := quorum.New(w.config(quorum.NoMachine))
	if err == nil {
		err = q.Start()
	}
	if err != nil {
		return client{}, err
	}
	for {
		s, err := q.Open(ctx)
		if err == nil {
			return client{s, q}, nil
		}
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			q.Close()
			return client{}, err
		}
	}
}

func (c client) Close() error {
	defer c.quorum.Close()
	return c.Store.Close()
}

// beStore is a quorum of one machine. It answers each line with its counts.
func beStore() error {
	w, in, err := readTold()
	if err != nil {
		return err
	}
	config := w.config(w.Address)
	config.Dir = filepath.Join(w.Dir, "data")
	q, err := quorum.New(config)
	if err == nil {
		err = q.Start()
	}
	if err != nil {
		return err
	}
	defer q.Close()
	for in.Scan() {
		c, err := readCounts()
		if err != nil {
			return err
		}
		fmt.Println(c.writes, c.reads, c.sent, c.received, c.watches)
	}
	return nil
}

// state is what the member's process tells.
type state struct {
	ID       string
	IDs      int    // that it has made
	Renewals uint64 // of its horizon, with its pulse
	Position int64
	Value    string    // a hash of the value
	At       time.Time // when it had that
}

// beMember is a member that makes a few IDs a second. It answers an empty line with its state, and one with a member ID
// once that is no member any more by its value.
func beMember() error {
	w, in, err := readTold()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := w.connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	m, err := peer.Start(func(context.Context) (store.Store, error) { return s, nil }, peer.Options{
		Owner: "measured", Window: w.Window, Vitals: vitals,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	defer m.Leave()
	made := make(chan int, 1)
	made <- 0
	go func() {
		for range time.Tick(250 * time.Millisecond) {
			s, err := m.EnsureSequencer(ctx, sequencer, cluster.Define(layout()))
			if err == nil {
				_, err = s.Next(ctx)
			}
			if err == nil {
				made <- <-made + 1
			}
		}
	}()
	for in.Scan() {
		v := m.Value()
		for id := in.Text(); id != "" && v.IsMember(id); v = m.Value() {
			time.Sleep(time.Millisecond) // a test waits for the answer
		}
		now := state{
			ID: m.ID(), IDs: <-made, Renewals: m.Stats().Extensions.Done, Position: v.Position(), At: time.Now(),
		}
		made <- now.IDs
		if now.Value, err = hash(v); err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(now); err != nil {
			return err
		}
	}
	return nil
}

func hash(v cluster.Value) (string, error) {
	data, err := cluster.EncodeCheckpoint(v)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// sequencer is the one of all members, whose layout has enough node IDs for them.
const sequencer = "orders"

func layout() firn.Layout {
	l := firn.Default
	l.DatacenterBits, l.NodeBits, l.SequenceBits = 0, 14, 8
	return l
}

// vitals are as long as those of a node of a service.
func vitals() peer.Vitals {
	return peer.Vitals{
		Version: "v1.0.0", Ready: true, For: time.Hour, Since: time.Now().Add(-time.Hour), Given: 12345, Rate: 4,
		Addresses: map[string]string{"http": "http://10.0.0.1:8080", "admin": "http://10.0.0.1:8081"},
		Rates:     map[string]float64{sequencer: 4},
	}
}

// process is another process of the test.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func spawn(t *testing.T, as string, w told) *process {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), role+"="+as)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	in, failed := p.cmd.StdinPipe()
	if err = cmp.Or(err, failed); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = in.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("the %s: %v", as, err)
		}
	})
	fmt.Fprintf(in, "%s\n", text)
	return p
}

// ask returns the answer to a line.
func (p *process) ask(line string) []byte {
	p.t.Helper()
	fmt.Fprintln(p.in, line)
	if !p.out.Scan() {
		p.t.Fatalf("a process has ended: %v", p.out.Err())
	}
	return p.out.Bytes()
}

// counts are those of the store.
func (p *process) counts() (c counts) {
	p.t.Helper()
	if _, err := fmt.Sscan(string(p.ask("")), &c.writes, &c.reads, &c.sent, &c.received, &c.watches); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// state is that of the member.
func (p *process) state(gone string) (s state) {
	p.t.Helper()
	if err := json.Unmarshal(p.ask(gone), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *process) read(file string) string {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// cpu is the processor time that the process has used, in whole ticks of 10 ms.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	stat := p.read("stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // from the third on
	user, err := strconv.Atoi(fields[14-3])
	system, failed := strconv.Atoi(fields[15-3])
	if err = cmp.Or(err, failed); err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory is the memory that the process has, and the most that it had since forgetPeak, in MiB.
func (p *process) memory() (now, most float64) {
	p.t.Helper()
	for line := range strings.Lines(p.read("status")) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			now = kib / 1024
		case "VmHWM":
			most = kib / 1024
		}
	}
	return now, most
}

func (p *process) forgetPeak() {
	p.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0); err != nil {
		p.t.Fatal(err)
	}
}
