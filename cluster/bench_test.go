package cluster

import (
	"fmt"
	"testing"

	"github.com/firn-id/firn"
)

// churn is a cluster of so many members that share a sequencer, and the entries by which its members are
// replaced one after the other, for ever.
type churn struct {
	value    Value
	position int64
	turn     int
	members  int
}

func newChurn(members int) *churn {
	c := &churn{members: members}
	for i := range members {
		c.join(i)
		if i == 0 {
			c.append(CreateSequencer{"default", Definition{Nodes: 1024, Layout: firn.Default}})
		}
		c.append(Attach{Sequencer: "default", Member: c.id(i)})
	}
	return c
}

func (c *churn) id(i int) string { return fmt.Sprintf("m%07d", i) }

func (c *churn) append(command Command) {
	c.position++
	c.value, _ = Apply(c.value, Entry{c.position, command})
}

func (c *churn) join(i int) {
	c.append(PrepareJoin{c.id(i)})
	c.append(NotifyWatchers{c.id(i)})
	c.append(AcceptJoin{c.id(i)})
}

// A member leaves and another joins and attaches: five entries.
func BenchmarkApply(b *testing.B) {
	for _, members := range []int{16, 1024} {
		b.Run(fmt.Sprint(members, "members"), func(b *testing.B) {
			c := newChurn(members)
			var entries []Entry
			for i := range 20_000 {
				old, next := c.id(i), c.id(i+members)
				for _, command := range []Command{
					Leave{old},
					PrepareJoin{next},
					NotifyWatchers{next},
					AcceptJoin{next},
					Attach{Sequencer: "default", Member: next},
				} {
					c.position++
					entries = append(entries, Entry{c.position, command})
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
