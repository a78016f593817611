package firn

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// fastClock shows begin, and from then on runs a hundred times as fast as time does.
type fastClock struct{ begin, since time.Time }

func (c *fastClock) Now() int64 { return c.begin.UnixNano() + 100*int64(time.Since(c.since)) }

// TestMain has the test's program be the process that is killed, if the environment says so.
func TestMain(m *testing.M) {
	if path := os.Getenv("FIRN_TEST_HORIZON_FILE"); path != "" {
		printIDs(path)
	}
	os.Exit(m.Run())
}

// printIDs writes IDs to the standard output until the process is killed. Its clock begins where the environment says.
func printIDs(path string) {
	begin, err := strconv.ParseInt(os.Getenv("FIRN_TEST_CLOCK"), 10, 64)
	if err != nil {
		panic(err)
	}
	g, err := NewGenerator(Default, 1, WithClock(&fastClock{time.Unix(0, begin), time.Now()}), WithHorizonFile(path))
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriterSize(os.Stdout, 8)
	for {
		id, err := g.Next(context.Background())
		if err != nil {
			panic(err)
		}
		if err := binary.Write(out, binary.BigEndian, int64(id)); err != nil {
			panic(err)
		}
		out.Flush()
	}
}

// A process is killed again and again, and its clock begins 150 ms before its last ID each time. It needs seconds of
// that clock, which are moments, to begin after the horizon.
func TestNoIDComesAgainAfterAKill(t *testing.T) {
	const kills, each = 12, 3000
	path, begin, given := horizonPath(t), at(5000), map[int64]int{}
	for run := range kills {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), "FIRN_TEST_HORIZON_FILE="+path,
			"FIRN_TEST_CLOCK="+strconv.FormatInt(begin.UnixNano(), 10))
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var last int64
		in := bufio.NewReader(out)
		for n := 0; ; n++ {
			var id [8]byte
			if _, err := io.ReadFull(in, id[:]); err != nil {
				if n < each || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("run %d: %d IDs, then %v", run, n, err)
				}
				break
			}
			last = int64(binary.BigEndian.Uint64(id[:]))
			if before, twice := given[last]; twice {
				t.Fatalf("run %d gave %d, as run %d did", run, last, before)
			}
			if given[last] = run; n == each {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = c.Wait() // killed
		made, err := Default.Time(ID(last))
		if err != nil {
			t.Fatal(err)
		}
		begin = made.Add(-150 * time.Millisecond)
	}
}
