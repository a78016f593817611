package firn

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The presets. Default is for new IDs, and JavaScript for new IDs that must be exact in
// a double (53 bits); the others read and continue existing IDs. Do not change them.
var (
	// Default lasts until 2095 and gives each of 1024 nodes 4 096 000 IDs a second.
	Default = preset("2026-01-01T00:00:00Z", time.Millisecond, 41, 0, 10, 12)

	// Twitter is the first snowflake, which X still uses.
	Twitter = preset("2010-11-04T01:42:54.657Z", time.Millisecond, 41, 5, 5, 12)

	// Discord calls the datacenter a worker and the node a process.
	Discord = preset("2015-01-01T00:00:00Z", time.Millisecond, 41, 5, 5, 12)

	// Instagram calls the node a shard. Its 64th bit, which would make IDs negative from 2046 on, is left out.
	Instagram = preset("2011-08-24T21:07:01.721Z", time.Millisecond, 40, 0, 13, 10)

	// Sonyflake is that of sony/sonyflake version 1; version 2 counts from 2025-01-01.
	Sonyflake = nodeLowest(preset("2014-09-01T00:00:00Z", 10*time.Millisecond, 39, 0, 16, 8))

	// Snowcast is that of noctarius/snowcast, with the epoch of its README.
	Snowcast = preset("2014-01-01T00:00:00Z", time.Millisecond, 40, 0, 13, 10)

	// JavaScript has 53 bits: 32 nodes with 128 000 IDs a second each, until 2095.
	JavaScript = preset("2026-01-01T00:00:00Z", time.Millisecond, 41, 0, 5, 7)
)

// Preset is a layout with its name.
type Preset struct {
	Name string
	Layout
}

// Presets returns the presets, the default first.
func Presets() []Preset {
	return []Preset{
		{"default", Default},
		{"twitter", Twitter},
		{"discord", Discord},
		{"instagram", Instagram},
		{"sonyflake", Sonyflake},
		{"snowcast", Snowcast},
		{"javascript", JavaScript},
	}
}

// ParseLayout reads a layout from the name of a preset, or from its bits, with the
// tick behind an @ where it is not 1 ms and the epoch of Default:
//
//	twitter       a preset
//	41/10/12      time, node and sequence bits
//	41/5/5/12     time, datacenter, node and sequence bits
//	39/16/8@10ms  with a tick of 10 ms
//
// It returns an error when the text is none of these, or the layout is not valid.
func ParseLayout(text string) (Layout, error) {
	names := make([]string, 0, 8)
	for _, p := range Presets() {
		if p.Name == text {
			return p.Layout, nil
		}
		names = append(names, p.Name)
	}
	fail := func(reason string) (Layout, error) {
		return Layout{},
			fmt.Errorf("layout %.40q: %s; want one of %s, or bits such as 41/10/12, 41/5/5/12 or 39/16/8@10ms",
				text, reason, strings.Join(names, ", "))
	}
	l := Default
	split, tick, hasTick := strings.Cut(text, "@")
	if hasTick {
		var err error
		if l.Tick, err = time.ParseDuration(tick); err != nil {
			return fail(fmt.Sprintf("%.40q is not a duration", tick))
		}
	}
	fields := strings.Split(split, "/")
	var into []*int
	switch len(fields) {
	case 3:
		into = []*int{&l.TimeBits, &l.NodeBits, &l.SequenceBits}
	case 4:
		into = []*int{&l.TimeBits, &l.DatacenterBits, &l.NodeBits, &l.SequenceBits}
	default:
		return fail("no preset has this name")
	}
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 6)
		if err != nil {
			return fail(fmt.Sprintf("%.40q is not a number of bits from 0 to 62", f))
		}
		*into[i] = int(n)
	}
	return l, l.Validate()
}

// String prints the layout as people read it, such as
// "41/10/12, tick 1ms, epoch 2026-01-01T00:00:00Z".
func (l Layout) String() string {
	order := ""
	if l.NodeLowest {
		order = " (node lowest)"
	}
	return fmt.Sprintf("%s%s, tick %v, epoch %s", l.split(), order, l.Tick, stamp(l.Epoch))
}

// split prints the bits of the fields as ParseLayout reads them.
func (l Layout) split() string {
	if l.DatacenterBits == 0 {
		return fmt.Sprintf("%d/%d/%d", l.TimeBits, l.NodeBits, l.SequenceBits)
	}
	return fmt.Sprintf("%d/%d/%d/%d", l.TimeBits, l.DatacenterBits, l.NodeBits, l.SequenceBits)
}

func preset(epoch string, tick time.Duration, timeBits, datacenter, node, sequence int) Layout {
	at, err := time.Parse(time.RFC3339Nano, epoch)
	if err != nil {
		panic(err)
	}
	return Layout{
		Epoch: at, Tick: tick, TimeBits: timeBits,
		DatacenterBits: datacenter, NodeBits: node, SequenceBits: sequence,
	}
}

func nodeLowest(l Layout) Layout {
	l.NodeLowest = true
	return l
}
