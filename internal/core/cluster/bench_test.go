package cluster

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/testenv"
)

// churn is a cluster of so many members that share a sequencer, of which each wants so many node IDs, and the entries
// by which its members are replaced one after the other, forever.
type churn struct {
	value    Value
	position int64
	members  int
}

func newChurn(members int) *churn {
	c := &churn{members: members}
	for i := range members {
		c.join(i)
		if i == 0 {
			c.append(CreateSequencer{Sequencer: "default", Definition: Definition{Nodes: 1024, Layout: firn.Default}})
		}
		c.append(c.attach(i))
	}
	return c
}

func (c *churn) id(i int) string { return fmt.Sprintf("m%07d", i) }

func (c *churn) attach(i int) Command {
	return Attach{Sequencer: "default", Member: c.id(i)}
}

func (c *churn) append(command Command) {
	c.position++
	c.value, _ = Apply(c.value, Entry{Position: c.position, Command: command})
}

func (c *churn) join(i int) {
	c.append(PrepareJoin{c.id(i)})
	c.append(NotifyWatchers{c.id(i)})
	c.append(AcceptJoin{c.id(i)})
}

// replaceOne returns the commands by which the i-th member is replaced.
func (c *churn) replaceOne(i int) []Command {
	old, next := c.id(i), c.id(i+c.members)
	return []Command{
		Leave{Member: old},
		PrepareJoin{next},
		NotifyWatchers{next},
		AcceptJoin{next},
		c.attach(i + c.members),
	}
}

// A member leaves and another joins and attaches: five entries.
func BenchmarkApply(b *testing.B) {
	for _, members := range []int{16, 1024} {
		b.Run(fmt.Sprintf("%dmembers", members), func(b *testing.B) {
			c := newChurn(members)
			var entries []Entry
			for i := range 20_000 {
				for _, command := range c.replaceOne(i) {
					c.position++
					entries = append(entries, Entry{Position: c.position, Command: command})
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			v := c.value
			for i := range b.N {
				if i%len(entries) == 0 {
					v = c.value
				}
				v, _ = Apply(v, entries[i%len(entries)])
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// Members join, at each of many copies of a cluster in turn, as where many members in one process replay one log: none
// is in the processor's caches when its turn comes. The entries come singly, or some at a time.
func BenchmarkJoin(b *testing.B) {
	const members, copies, joins = 1024, 256, 128
	c := newChurn(members)
	checkpoint, err := EncodeCheckpoint(c.value)
	if err != nil {
		b.Fatal(err)
	}
	var entries [][]byte
	for i := range joins {
		id := c.id(members + i)
		for _, command := range []Command{PrepareJoin{id}, NotifyWatchers{id}, AcceptJoin{id}} {
			data, err := Encode(command, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			entries = append(entries, data)
		}
	}
	values := make([]Value, copies)
	for _, together := range []int{1, 8, 24, 96} {
		b.Run(fmt.Sprintf("%dtogether", together), func(b *testing.B) {
			b.ReportAllocs()
			for done := 0; done < b.N; {
				b.StopTimer()
				for i := range values {
					if values[i], err = DecodeCheckpoint(checkpoint); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				position := c.position
				for some := range slices.Chunk(entries, together) {
					for i, v := range values {
						r := NewReplay(v)
						for j, data := range some {
							e, err := Decode(position+int64(j), data)
							if err != nil {
								b.Fatal(err)
							}
							r.Apply(e)
						}
						values[i] = r.Value()
						done += len(some)
					}
					if position += int64(len(some)); done >= b.N {
						break
					}
				}
			}
		})
	}
}

// A million entries are replayed from a checkpoint, as they come from a store, and what a member holds does not
// grow with them. Run it with -v for the rate.
func TestReplayFromACheckpointInBoundedMemory(t *testing.T) {
	const members, limit = 1024, 32 << 20
	replaced := 200_000
	if testenv.Race {
		replaced = 5_000
	}
	c := newChurn(members)
	checkpoint, err := EncodeCheckpoint(c.value)
	if err != nil {
		t.Fatal(err)
	}
	v, err := DecodeCheckpoint(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	began, position, base := time.Now(), v.Position(), heap()
	for i := range replaced {
		for _, command := range c.replaceOne(i) {
			data, err := Encode(command, began)
			if err != nil {
				t.Fatal(err)
			}
			position++
			e, err := Decode(position, data)
			if err != nil {
				t.Fatal(err)
			}
			v, _ = Apply(v, e)
		}
		if i%(replaced/5) == 0 {
			if grown := heap() - base; grown > limit {
				t.Fatalf("after %d entries it holds %d MiB more than at the beginning", 5*i, grown>>20)
			}
		}
	}
	if v.Size() != members || v.Entries() != c.value.Entries()+int64(5*replaced) {
		t.Errorf("%d members after %d entries", v.Size(), v.Entries())
	}
	t.Logf("%d entries in %v, encoded and decoded: %.0f a second; it holds %d KiB more than at the beginning",
		5*replaced, time.Since(began).Round(time.Millisecond), float64(5*replaced)/time.Since(began).Seconds(),
		(heap()-base)>>10)
}

// heap is how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
