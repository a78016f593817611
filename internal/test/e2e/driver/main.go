// Command driver puts the Go client through the conformance suite: it does what the lines of its standard input ask
// for, as clients/conformance/README.md describes. It is for tests alone.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// defects are what -broken knows. The suite must find each of them.
var defects = []string{"float64", "hasty", "impatient", "stale", "twice", "unsorted", "vague"}

var broken = flag.String("broken", "", fmt.Sprintf("a defect to show, one of %v; by default none", defects))

func main() {
	flag.Parse()
	if *broken != "" && !slices.Contains(defects, *broken) {
		fmt.Fprintf(os.Stderr, "-broken is %q; want one of %v\n", *broken, defects)
		os.Exit(2)
	}
	lines := bufio.NewScanner(os.Stdin)
	if !lines.Scan() {
		os.Exit(2)
	}
	d := &driver{out: json.NewEncoder(os.Stdout)}
	if err := d.open(lines.Bytes()); err != nil {
		d.write(answer{Error: describe(err)})
		os.Exit(1)
	}
	d.write(answer{Ready: true})
	var all sync.WaitGroup
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintf(os.Stderr, "%q: %v\n", lines.Bytes(), err)
			os.Exit(2)
		}
		all.Go(func() { d.serve(r) })
	}
	all.Wait()
	_ = d.client.Close()
}

// opening is the first line.
type opening struct {
	Nodes    []string
	Token    string
	CA       string
	Prefetch *struct {
		Count    int
		MaxAgeMS *int `json:"max_age_ms"`
	}
	TimeoutMS int `json:"timeout_ms"`
}

type request struct {
	N              int
	Do             string
	Sequencer      string
	Form, As       string
	Count          int
	ID             string
	Layout         string
	Callers, Calls int
}

type answer struct {
	N      int      `json:"n,omitempty"`
	Ready  bool     `json:"ready,omitempty"`
	IDs    []string `json:"ids,omitzero"`
	Failed *int     `json:"failed,omitempty"`
	Parts  *parts   `json:"parts,omitempty"`
	*hooks
	Closed bool     `json:"closed,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

type parts struct {
	UnixMS     int64 `json:"unix_ms"`
	Tick       int64 `json:"tick"`
	Datacenter int64 `json:"datacenter"`
	Node       int64 `json:"node"`
	NodeID     int64 `json:"node_id"`
	Sequence   int64 `json:"sequence"`
}

type hooks struct {
	Attempts int64 `json:"attempts"`
	Hedged   int64 `json:"hedged"`
	Fetched  int64 `json:"fetched"`
	Expired  int64 `json:"expired"`
}

type failure struct {
	Kind         string `json:"kind"`
	Code         string `json:"code,omitempty"`
	Status       int    `json:"status,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	Message      string `json:"message"`
}

type driver struct {
	client  *client.Client
	timeout time.Duration

	attempts, hedged, fetched, expired atomic.Int64

	answers, last atomic.Int64                       // those with IDs, and an ID of the latest one
	giveUp        atomic.Pointer[context.CancelFunc] // ends the latest call

	mu  sync.Mutex // guards out
	out *json.Encoder
}

func (d *driver) write(a answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.out.Encode(a); err != nil {
		os.Exit(2)
	}
}

func (d *driver) open(line []byte) error {
	var o opening
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	options := []client.Option{client.WithHooks(client.Hooks{
		Attempt: func(a client.Attempt) {
			d.attempts.Add(1)
			if a.Hedged {
				d.hedged.Add(1)
			}
			if giveUp := d.giveUp.Load(); a.Err != nil && giveUp != nil {
				(*giveUp)()
			}
		},
		Batch: func(b client.Batch) {
			d.fetched.Add(int64(b.Fetched))
			d.expired.Add(int64(b.Expired))
		},
	})}
	if o.Token != "" {
		options = append(options, client.WithToken(func() string { return o.Token }))
	}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s has no certificate", o.CA)
		}
		options = append(options, client.WithTLS(&tls.Config{RootCAs: roots}))
	}
	if p := o.Prefetch; p != nil {
		age := client.DefaultMaxAge
		if p.MaxAgeMS != nil {
			age = time.Duration(*p.MaxAgeMS) * time.Millisecond
		}
		if *broken == "stale" {
			age *= 100
		}
		options = append(options, client.WithPrefetch(p.Count, age))
	}
	d.timeout = client.DefaultTimeout
	if o.TimeoutMS > 0 {
		d.timeout = time.Duration(o.TimeoutMS) * time.Millisecond
	}
	var err error
	d.client, err = client.New(o.Nodes, options...)
	return err
}

func (d *driver) serve(r request) {
	a, err := d.do(r)
	if err != nil {
		a = answer{Error: describe(err)}
		if *broken == "vague" {
			a.Error.Kind = "no_answer"
		}
	}
	a.N = r.N
	d.write(a)
}

func (d *driver) do(r request) (answer, error) {
	switch r.Do {
	case "next":
		r.Count = 1
		fallthrough
	case "fill":
		texts, err := d.take(r)
		return answer{IDs: texts}, err
	case "convert":
		ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
		defer cancel()
		text, err := d.client.Sequencer(r.Sequencer).ConvertFrom(ctx, r.As, r.ID, r.Form)
		return answer{IDs: []string{text}}, err
	case "run":
		return d.run(r)
	case "decode":
		p, err := decode(r.ID, r.Layout)
		return answer{Parts: p}, err
	case "hooks":
		return answer{hooks: &hooks{d.attempts.Load(), d.hedged.Load(), d.fetched.Load(), d.expired.Load()}}, nil
	case "close":
		if *broken == "hasty" {
			return answer{Closed: true}, nil
		}
		return answer{Closed: true}, d.client.Close()
	}
	return answer{}, fmt.Errorf("do is %q; want next, fill, convert, run, decode, hooks or close", r.Do)
}

// take takes r.Count IDs by Next or Fill, and returns their texts.
func (d *driver) take(r request) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	if *broken == "impatient" {
		d.giveUp.Store(&cancel)
	}
	s := d.client.Sequencer(r.Sequencer)
	if r.Form != "" {
		return s.Texts(ctx, r.Form, r.Count)
	}
	ids := make([]firn.ID, r.Count)
	var err error
	if r.Do == "fill" {
		err = s.Fill(ctx, ids)
	} else {
		ids[0], err = s.Next(ctx)
	}
	if err != nil {
		return nil, err
	}
	return d.texts(ids), nil
}

func (d *driver) texts(ids []firn.ID) []string {
	if len(ids) > 0 {
		last := d.last.Swap(int64(ids[0]))
		if *broken == "twice" && d.answers.Add(1)%10 == 0 {
			ids[0] = firn.ID(last)
		}
	}
	if *broken == "unsorted" {
		slices.Reverse(ids)
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		if *broken == "float64" {
			id = firn.ID(float64(id))
		}
		texts[i] = id.String()
	}
	return texts
}

// run has r.Callers callers call at once, each r.Calls times.
func (d *driver) run(r request) (answer, error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	ids, failed := []firn.ID{}, 0
	for range r.Callers {
		all.Go(func() {
			for range r.Calls {
				ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
				id, err := d.client.Sequencer(r.Sequencer).Next(ctx)
				cancel()
				mu.Lock()
				if err != nil {
					failed++
				} else {
					ids = append(ids, id)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return answer{IDs: d.texts(ids), Failed: &failed}, nil
}

func decode(text, layout string) (*parts, error) {
	id, err := firn.Parse(text)
	if err != nil {
		return nil, err
	}
	l := firn.Default
	if layout != "" {
		if l, err = firn.ParseLayout(layout); err != nil {
			return nil, err
		}
	}
	p, err := l.Decompose(id)
	if err != nil {
		return nil, err
	}
	return &parts{
		l.TickStart(p.Tick).UnixMilli(), p.Tick, p.Datacenter, p.Node, p.Datacenter<<l.NodeBits | p.Node,
		p.Sequence,
	}, nil
}

func isMixed(err error) bool {
	_, ok := errors.AsType[*client.MixedError](err)
	return ok
}

func describe(err error) *failure {
	f := &failure{Kind: "invalid", Message: err.Error()}
	switch e, ok := errors.AsType[*client.Error](err); {
	case errors.Is(err, client.ErrNoAnswer): // which may wrap a refusal of each node
		f.Kind = "no_answer"
	case isMixed(err):
		f.Kind = "mixed"
	case errors.Is(err, client.ErrClosed):
		f.Kind = "closed"
	case ok:
		f.Kind, f.Code, f.Status, f.RetryAfterMS = "refused", e.Code, e.Status, e.RetryAfter.Milliseconds()
	}
	return f
}
