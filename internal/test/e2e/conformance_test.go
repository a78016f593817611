//go:build unix

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// conformance is where the suite is that every client passes; its README says what is in it.
var conformance = filepath.Join("..", "..", "..", "clients", "conformance")

var driverNames = flag.String("drivers", "",
	"TestConformance: the drivers that must run, separated by commas, or all, and then TestGeneratedClients runs, "+
		"too; by default those that can run here")

// driver is a program that speaks the protocol of the suite for one client.
type driver struct {
	Name     string            `json:"name"`
	Folder   string            `json:"folder"`   // where Build and Run run, seen from the root of the repository
	Programs map[string]string `json:"programs"` // that they need, each with its Debian package
	Build    string            `json:"build"`    // may be empty; may put files into $OUT
	Run      string            `json:"run"`

	out     string // $OUT
	missing string // why it can't run here; empty: it can
}

func (d *driver) command(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = filepath.Join("..", "..", "..", filepath.FromSlash(d.Folder))
	cmd.Env = append(os.Environ(), "OUT="+d.out)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// scenario is what happens to clients, and what they must make of it.
type scenario struct {
	Name       string                    `json:"name"`
	About      string                    `json:"about"`
	Nodes      int                       `json:"nodes"`      // of one service, which all drivers use at the same time
	ClocksMS   []int                     `json:"clocks_ms"`  // in place of that: how far the clock of each is off
	Stubs      int                       `json:"stubs"`      // of each driver
	Sequencers map[string]map[string]any `json:"sequencers"` // to create, by name, with the fields of their definitions
	Tokens     bool                      `json:"tokens"`     // the nodes want tokens
	Sealed     bool                      `json:"sealed"`     // the nodes have keys to seal IDs
	TLS        bool                      `json:"tls"`
	Open       map[string]any            `json:"open"` // the opening, besides the nodes
	Want       want                      `json:"want"` // for its answer
	Steps      []step                    `json:"steps"`
}

// step is one thing to do: exactly one of the fields besides those of Send.
type step struct {
	Send    map[string]any `json:"send"`
	Want    want           `json:"want"`
	Times   int            `json:"times"`    // how often; 0: once
	PauseMS int            `json:"pause_ms"` // after each time
	Ascend  bool           `json:"ascend"`   // the IDs exceed all of earlier steps that say so
	Until   *struct {      // in place of Times: until a stub has so many requests
		Stub     int `json:"stub"`
		Requests int `json:"requests"`
	} `json:"until"`

	Load *struct {
		Callers int `json:"callers"`
	} `json:"load"`
	Answers int64 `json:"answers"`
	Stop    bool  `json:"stop"`
	Fault   *struct {
		Node   int    `json:"node"`
		Signal string `json:"signal"`
	} `json:"fault"`
	Ended  *int `json:"ended"` // the node that ends by itself, with status 0
	Script *struct {
		Stub    int     `json:"stub"`
		Replies []reply `json:"replies"`
	} `json:"script"`
	Asked *struct {
		Stub    int    `json:"stub"`
		Path    string `json:"path"`
		AtLeast int    `json:"at_least"`
		AtMost  *int   `json:"at_most"`
	} `json:"asked"`
	RetryAfter *struct {
		Stub int `json:"stub"`
	} `json:"retry_after"`
	Close *struct {
		During int `json:"during"`
	} `json:"close"`
	Vectors string `json:"vectors"`
}

// want is what an answer must have, besides what every answer to the request must.
type want struct {
	IDs     []string       `json:"ids"`
	Error   *failure       `json:"error"`
	AtLeast map[string]int `json:"at_least"` // of the hooks
	AtMost  map[string]int `json:"at_most"`
}

var signals = map[string]syscall.Signal{
	"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	"TERM": syscall.SIGTERM,
}

// Every client passes every scenario.
func TestConformance(t *testing.T) {
	testenv.Slow(t)
	drivers := readDrivers(t, *driverNames)
	nodes := &pool{t: t}
	able := slices.DeleteFunc(slices.Clone(drivers), func(d *driver) bool { return d.missing != "" })
	for _, s := range readScenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			faults := s.play(t, nodes, able)
			for _, d := range drivers {
				t.Run(d.Name, func(t *testing.T) {
					if d.missing != "" {
						t.Skip(d.missing)
					}
					for _, fault := range faults[d.Name] {
						t.Error(fault)
					}
				})
			}
		})
	}
}

// The suite finds what is wrong with a client.
func TestConformanceFindsDefects(t *testing.T) {
	testenv.Slow(t)
	drivers, nodes := readDrivers(t, "go"), &pool{t: t}
	scenarios := map[string]scenario{}
	for _, s := range readScenarios(t) {
		scenarios[s.Name] = s
	}
	for _, c := range []struct{ defect, scenario, fault string }{
		{"twice", "calls", "came twice"},
		{"twice", "slow", "came twice"},
		{"float64", "calls", "want them to ascend"},
		{"float64", "exact", `want ["9007199254740993"]`},
		{"unsorted", "calls", "want them to ascend"},
		{"unsorted", "counter", "want the number that follows"},
		{"impatient", "retried", "want no error"},
		{"stale", "age", "old; want at most 300ms"},
		{"vague", "refused", "want {Kind:refused"},
		{"hasty", "close", "while calls wait"},
	} {
		t.Run(c.defect+" in "+c.scenario, func(t *testing.T) {
			s, ok := scenarios[c.scenario]
			if !ok {
				t.Fatal("no such scenario")
			}
			faults := s.play(t, nodes, drivers, "-broken="+c.defect)["go"]
			if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.fault) }) {
				t.Errorf("%q; want %q among them", faults, c.fault)
			}
		})
	}
}

// readDrivers returns the drivers with these names, separated by commas, and builds them; for "all" or "" those of
// drivers.json. Those that a name or "all" asks for must be able to run.
func readDrivers(t *testing.T, names string) (all []*driver) {
	t.Helper()
	readSuite(t, "drivers.json", &all)
	if names != "" && names != "all" {
		var named []*driver
		for name := range strings.SplitSeq(names, ",") {
			i := slices.IndexFunc(all, func(d *driver) bool { return d.Name == name })
			if i < 0 {
				t.Fatalf("-drivers has %q; want names of drivers.json", name)
			}
			named = append(named, all[i])
		}
		all = named
	}
	var building sync.WaitGroup
	for _, d := range all {
		d.out = t.TempDir()
		building.Go(d.prepare)
	}
	building.Wait()
	for _, d := range all {
		if d.missing != "" && names != "" {
			t.Fatalf("%s can't run: %s", d.Name, d.missing)
		}
	}
	return all
}

// prepare builds a driver.
func (d *driver) prepare() {
	for _, program := range slices.Sorted(maps.Keys(d.Programs)) {
		if _, err := exec.LookPath(program); err != nil {
			d.missing = fmt.Sprintf("%s is not installed; on Debian: apt-get install %s", program, d.Programs[program])
			return
		}
	}
	if out, err := d.command(d.Build).CombinedOutput(); err != nil {
		d.missing = fmt.Sprintf("building it: %v\n%s", err, out)
	}
}

func readScenarios(t *testing.T) (all []scenario) {
	t.Helper()
	readSuite(t, "scenarios.json", &all)
	return all
}

// readSuite reads a file of the suite.
func readSuite(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(conformance, name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if d.DisallowUnknownFields(); name == "vectors.json" { // has more, for other tests
		d = json.NewDecoder(bytes.NewReader(text))
	}
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// pool is nodes of one service. Scenarios use it one after the other, since to found a service takes seconds.
type pool struct {
	t      *testing.T
	server *etcdtest.Server
	nodes  []*node
	births int
}

// of returns so many nodes that live.
func (c *pool) of(many int) []*node {
	c.t.Helper()
	if c.server == nil {
		c.server = etcdtest.Start(c.t, etcdtest.Options{})
	}
	c.nodes = slices.DeleteFunc(c.nodes, func(n *node) bool {
		select {
		case <-n.exited:
			return true
		default:
			return false
		}
	})
	for len(c.nodes) < many {
		c.nodes = append(c.nodes, serve(c.t, fmt.Sprint("node ", c.births), with(c.server, "--ttl=2s")...))
		c.births++
	}
	return c.nodes[:many]
}

// stage is where a scenario is played.
type stage struct {
	t       *testing.T
	pool    *pool
	began   time.Time
	nodes   []*node
	parties []*party
}

// play plays a scenario with all drivers at once, and returns what each did wrong.
func (s scenario) play(t *testing.T, nodes *pool, drivers []*driver, args ...string) map[string][]string {
	t.Helper()
	g := &stage{t: t, pool: nodes, began: time.Now()}
	open := maps.Clone(s.Open)
	if open == nil {
		open = map[string]any{}
	}
	if s.Nodes > 0 || len(s.ClocksMS) > 0 {
		g.serve(s, open)
	}
	for _, d := range drivers {
		p := join(t, d, s.Stubs, args...)
		p.sequencers, p.nodes = s.Sequencers, g.nodes
		g.parties = append(g.parties, p)
	}
	g.each(func(p *party) { g.open(p, s, open) })
	if s.Want.Error == nil {
		for _, step := range s.Steps {
			g.step(step)
		}
		g.each(func(p *party) {
			if len(s.Steps) == 0 || s.Steps[len(s.Steps)-1].Close == nil {
				p.close()
			}
		})
	}
	g.unique()
	faults := map[string][]string{}
	for _, p := range g.parties {
		faults[p.driver.Name] = p.faults
		if len(p.faults) > 0 && len(args) == 0 {
			t.Logf("the standard error of %s:\n%s", p.driver.Name, p.log)
		}
	}
	return faults
}

// serve starts the nodes, and completes the opening.
func (g *stage) serve(s scenario, open map[string]any) {
	scheme, admin := "http", ""
	if s.TLS || s.Tokens || s.Sealed {
		dir := g.t.TempDir()
		args := []string{"--data-dir=" + filepath.Join(dir, "data")}
		if len(s.ClocksMS) > 0 {
			args = with(etcdtest.Start(g.t, etcdtest.Options{}))
		}
		if s.TLS {
			scheme = "https"
			files := certtest.WriteFiles(g.t, dir)
			args = append(args, "--tls-cert="+files.ServerCert, "--tls-key="+files.ServerKey)
			if open["ca"] == "own" {
				open["ca"] = files.CA
			}
		}
		if s.Sealed {
			args = append(args, "--seal-key-file="+writeSealKey(g.t, dir))
		}
		if s.Tokens {
			file := filepath.Join(dir, "tokens.yaml")
			args = append(args, "--tokens="+file)
			admin = newToken(g.t, file, "--name=admin", "--allow=admin")
			good := newToken(g.t, file, "--name=good", "--allow=issue", "--allow=attach", "--sequencer=orders")
			open["token"] = map[any]string{
				"good":  good,
				"order": newToken(g.t, file, "--name=order", "--allow=issue", "--allow=attach", "--allow=order"),
				"wrong": "firn_" + strings.Repeat("A", len(good)-len("firn_")),
			}[open["token"]]
		}
		for i, off := range s.ClocksMS {
			g.nodes = append(g.nodes, startOff(g.t, firnSteppable, time.Duration(off)*time.Millisecond,
				fmt.Sprint("node ", i), "", args...))
		}
		if len(s.ClocksMS) == 0 {
			g.nodes = []*node{serve(g.t, "node", args...)}
		}
	} else {
		g.nodes = g.pool.of(s.Nodes)
	}
	var urls []string
	for _, n := range g.nodes {
		n.url = strings.Replace(n.url, "http:", scheme+":", 1)
		urls = append(urls, n.url)
	}
	probe := &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	for _, n := range g.nodes {
		eventually(g.t, func() error {
			r, err := probe.Get(n.url + "/readyz")
			if err != nil {
				return err
			}
			defer r.Body.Close()
			if r.StatusCode != http.StatusOK {
				return fmt.Errorf("%s is not ready: status %d", n.name, r.StatusCode)
			}
			return nil
		})
	}
	for name, fields := range s.Sequencers {
		definition := map[string]any{"name": name}
		if fields["kind"] == nil {
			definition["nodes"] = 64
		}
		maps.Copy(definition, fields)
		body, err := json.Marshal(definition)
		if err == nil && s.Tokens {
			_, err = exchangeAs(caller, admin, http.MethodPost, g.nodes[0].admin+sequencers, string(body), nil)
		} else if err == nil {
			_, err = g.nodes[0].call(http.MethodPost, sequencers, string(body), nil)
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	open["nodes"] = urls
}

// writeSealKey makes a file with a key to seal IDs. It is the same one each time, so that scenarios can tell what it
// seals.
func writeSealKey(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "seal.keys")
	if err := os.WriteFile(file, []byte("1 bGV0IG1lIHRlbGwgeW91IGEgc2VjcmV0IHRoYXQgaXM=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// each does something with all drivers at once.
func (g *stage) each(do func(*party)) {
	var all sync.WaitGroup
	for _, p := range g.parties {
		if !p.gone() {
			all.Go(func() { do(p) })
		}
	}
	all.Wait()
}

func (g *stage) open(p *party, s scenario, open map[string]any) {
	open = maps.Clone(open)
	if open["nodes"] == nil {
		urls := []string{}
		for _, stub := range p.stubs {
			urls = append(urls, stub.server.URL)
		}
		open["nodes"] = urls
	}
	if ahead, ok := open["prefetch"].(map[string]any); ok {
		p.maxAge = client.DefaultMaxAge
		if ms, ok := ahead["max_age_ms"]; ok {
			p.maxAge = time.Duration(number(ms)) * time.Millisecond
		}
	}
	a, ok := p.ask(open)
	switch {
	case !ok:
	case s.Want.Error != nil:
		p.checkError(open, a, s.Want.Error)
	case a.Error != nil || !a.Ready:
		p.leave("it answers %s to the opening %v; want it ready", a.line, open)
	}
}

func (g *stage) step(s step) {
	switch {
	case s.Send != nil:
		g.each(func(p *party) { p.repeat(s) })
	case s.Load != nil:
		g.each(func(p *party) { p.begin(s.Load.Callers) })
	case s.Answers > 0:
		g.each(func(p *party) { p.answers(s.Answers) })
	case s.Stop:
		g.each((*party).stop)
	case s.Fault != nil:
		g.nodes[s.Fault.Node].signal(signals[s.Fault.Signal])
	case s.Ended != nil:
		if status := g.nodes[*s.Ended].ended(); status != 0 {
			g.t.Errorf("the node ended with status %d", status)
		}
	case s.Script != nil:
		g.each(func(p *party) { p.stubs[s.Script.Stub].play(s.Script.Replies) })
	case s.Asked != nil:
		g.each(func(p *party) {
			asked := p.stubs[s.Asked.Stub].asked(s.Asked.Path)
			if asked < s.Asked.AtLeast || s.Asked.AtMost != nil && asked > *s.Asked.AtMost {
				g.judge(p, "stub %d was asked %d times for %q; want at least %d, and no more than the scenario says",
					s.Asked.Stub, asked, s.Asked.Path, s.Asked.AtLeast)
			}
		})
	case s.RetryAfter != nil:
		g.each(func(p *party) {
			if after, rest, found := p.stubs[s.RetryAfter.Stub].disturbed(); found {
				g.judge(p, "stub %d was asked %v after it had asked for a rest of %v", s.RetryAfter.Stub, after, rest)
			}
		})
	case s.Close != nil:
		g.each(func(p *party) { p.closeDuring(s.Close.During) })
	default:
		var v vectors
		readSuite(g.t, "vectors.json", &v)
		g.each(func(p *party) { p.vectors(v, s.Vectors) })
	}
}

// judge is for what a client that runs in time does not do.
func (g *stage) judge(p *party, format string, args ...any) {
	if late := responsive.Late(g.began); late > responsive.Limit {
		g.t.Logf("%s is not judged, since this machine was late by up to %v: "+format,
			append([]any{p.driver.Name, late}, args...)...)
		return
	}
	p.faultf(format, args...)
}

// unique finds IDs that came twice: to one driver from its stubs, or to any two from nodes.
func (g *stage) unique() {
	seen := map[string]*party{}
	for _, p := range g.parties {
		for sequencer, taken := range p.taken {
			for _, id := range taken {
				key := fmt.Sprint(sequencer, " ", id)
				if len(p.stubs) > 0 {
					key = fmt.Sprint(p.driver.Name, " ", key)
				}
				if other := seen[key]; other != nil {
					p.faultf("%d came twice; the first time to %s", id, other.driver.Name)
				}
				seen[key] = p
			}
		}
	}
}

// repeat sends a request as often as the step says.
func (p *party) repeat(s step) {
	began := time.Now()
	for i := 0; !p.gone(); i++ {
		if u := s.Until; u != nil {
			if p.stubs[u.Stub].asked("") >= u.Requests {
				return
			}
			if time.Since(began) > patience {
				p.leave("stub %d got %d requests within %v; want %d", u.Stub, p.stubs[u.Stub].asked(""),
					patience, u.Requests)
			}
		} else if i >= max(s.Times, 1) {
			return
		}
		if s.Ascend {
			p.ascends(s.Send, s.Want)
		} else {
			p.send(s.Send, s.Want)
		}
		time.Sleep(time.Duration(s.PauseMS) * time.Millisecond)
	}
}

// vectors are what vectors.json says of IDs and their texts, which a test of the root package makes.
type vectors struct {
	IDs    []map[string]string `json:"ids"` // by form
	Decode []struct {
		Layout string           `json:"layout"`
		ID     string           `json:"id"`
		Parts  map[string]int64 `json:"parts"`
	} `json:"decode"`
	NotDecoded []struct {
		Layout string `json:"layout"`
		ID     string `json:"id"`
	} `json:"not_decoded"`
}

// vectors tries one part of them.
func (p *party) vectors(v vectors, part string) {
	switch part {
	case "texts":
		for _, id := range v.IDs {
			if id["decimal"] == "0" {
				continue // no node gives it
			}
			for form, text := range id {
				p.stubs[0].play([]reply{{IDs: []string{id["decimal"]}}})
				p.send(map[string]any{"do": "next", "form": form}, want{IDs: []string{text}})
			}
		}
	case "decode":
		for _, d := range v.Decode {
			line := map[string]any{"do": "decode", "id": d.ID, "layout": d.Layout}
			if a, ok := p.ask(line); ok && (a.Error != nil || !maps.Equal(a.Parts, d.Parts)) {
				p.faultf("%v: %s; want %v", line, a.line, d.Parts)
			}
		}
		for _, d := range v.NotDecoded {
			p.send(map[string]any{"do": "decode", "id": d.ID, "layout": d.Layout},
				want{Error: &failure{Kind: "invalid"}})
		}
	}
}
