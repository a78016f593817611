package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/console"
)

// intro returns what runs, and what to try.
func (d *demo) intro(first firn.ID, took time.Duration) string {
	var b strings.Builder
	store := "on a store in memory"
	if d.quorum != nil {
		store = "which keep the store themselves"
	}
	fmt.Fprintf(&b, "%s in this process, %s. First ID after %.3f s: %d\n\n",
		console.Plural(int64(len(d.hosts)), "node"), store, took.Seconds(), first)
	for _, n := range d.hosts {
		fmt.Fprintf(&b, "  node %-4d  %s\n", n.number, n.url)
	}
	fmt.Fprintf(&b, "  dashboard  %s/ui/\n", d.admin)
	where := ""
	if strings.HasPrefix(d.self, "go run ") {
		where = ", in this directory"
	}
	fmt.Fprintf(&b, "\nTry in another terminal%s:\n", where)
	one, killed := d.hosts[len(d.hosts)/2].number,
		"kill -9 a node: the others take it out of the cluster within "+console.Brief(d.config.TTL)
	if len(d.hosts) == 1 {
		killed = "kill -9 the node"
	}
	tries := []try{
		{"take an ID, and decode it", []string{
			`curl -X POST "` + d.hosts[0].url + `/api/v1/id?ids=string"`,
			d.command(fmt.Sprintf("decode %d", first)),
		}},
		{
			"take the next number, the next number of today, and an ID in strict order",
			[]string{
				d.command("id --sequencer invoices"), d.command("id --sequencer receipts"),
				d.command("id --sequencer events"),
			},
		},
		{
			"create another ID space",
			[]string{d.command("sequencer create orders --nodes 128"), d.command("id --sequencer orders")},
		},
		{
			"see who is a member, and the log of the cluster",
			[]string{d.command("cluster status"), d.command("cluster log")},
		},
		{"measure it", []string{d.benchCommand()}},
	}
	if d.quorum != nil {
		tries = append(tries, d.quorumTries()...)
	} else {
		tries = append(
			tries,
			try{killed, []string{
				d.command(fmt.Sprintf("demo kill %d", one)),
				d.command(fmt.Sprintf("demo start %d", one)),
			}},
			try{
				"pause a node, as kill -STOP does",
				[]string{d.command(fmt.Sprintf("demo pause %d", one)), d.command(fmt.Sprintf("demo resume %d", one))},
			},
			try{"set all clocks: they agree, so nobody notices", []string{d.command("demo step-clock all +1h")}},
			try{
				"set one clock: its node stops giving IDs, and the others serve",
				[]string{d.command("demo step-clock 1 +2h"), d.command("demo step-clock 1 -2h")},
			},
			try{
				fmt.Sprintf("take the store away: IDs still flow for up to %v", console.Brief(d.config.Window)),
				[]string{d.command("demo stop-store"), d.command("demo start-store")},
			},
		)
	}
	for _, s := range append(tries, try{"see how things are", []string{d.command("demo status")}}) {
		fmt.Fprintf(&b, "\n  %s\n", s.what)
		for _, command := range s.commands {
			b.WriteString(tryLine(command))
		}
	}
	b.WriteString("\nCtrl-C ends it.\n\n")
	return b.String()
}

// try is what to try.
type try struct {
	what     string
	commands []string
}

// quorumTries kills machines of the quorum until there is no majority, and brings them back.
func (d *demo) quorumTries() []try {
	var kills, starts []string
	for i := range len(d.hosts)/2 + 1 {
		number := d.hosts[len(d.hosts)-1-i].number
		kills = append(kills, d.command(fmt.Sprintf("demo kill %d", number)))
		starts = append(starts, d.command(fmt.Sprintf("demo start %d", number)))
	}
	most, last := kills[:len(kills)-1], kills[len(kills)-1:]
	tries := []try{{"see the machines that keep the data", []string{d.command("quorum status")}}}
	if len(most) > 0 {
		tries = append(tries, try{"kill -9 a minority of them: nobody notices", most})
	}
	return append(tries,
		try{fmt.Sprintf("kill one more, and the majority is lost: IDs still flow for up to %v, then calls fail",
			console.Brief(d.config.Window)), last},
		try{"bring them back", starts})
}

// benchCommand loads all nodes for a short time.
func (d *demo) benchCommand() string {
	var urls []string
	for _, n := range d.hosts {
		urls = append(urls, n.url)
	}
	return d.self + " bench --duration 3s --server " + strings.Join(urls, ",")
}

// summary returns the outcome of the demo.
func (d *demo) summary(c Counts) string {
	order := "none out of order"
	if c.Disorder > 0 {
		order = console.Number(float64(c.Disorder)) + " out of order"
	}
	return fmt.Sprintf("In %v: %s, %s. Nothing is left behind.\n", time.Since(d.began).Round(time.Second), c, order)
}

// say prints an event.
func (d *demo) say(format string, args ...any) {
	// there may be no reader
	_ = d.out.Print(time.Now().Format(time.TimeOnly) + "  " + fmt.Sprintf(format, args...) + "\n")
}

const (
	lookEvery   = 500 * time.Millisecond
	reportEvery = 10 * time.Second
)

// follow prints the status until ctx ends: on a terminal as its last line, otherwise now and then. It always
// prints changes.
func (d *demo) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	before, reported, failing := d.status(), time.Now(), false
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			d.out.Set("")
			return
		case <-tick.C:
		}
		if i%2 == 0 {
			d.measure()
		}
		now := d.status()
		for _, change := range now.changes(before) {
			d.say("%s", change)
		}
		switch fails := now.Load.Errors > before.Load.Errors; {
		case fails && !failing:
			why, _, _ := strings.Cut(fmt.Sprint(d.load.latest.Load()), ";")
			d.say("calls fail: %s", why)
			failing = true
		case !fails && failing && now.Load.IDs > before.Load.IDs:
			d.say("calls get IDs again; %s failed", console.Plural(now.Load.Errors, "call"))
			failing = false
		}
		before = now
		d.out.Set(now.line())
		if !d.out.Terminal() && time.Since(reported) >= reportEvery {
			reported = time.Now()
			d.say("%s", now.line())
		}
	}
}
