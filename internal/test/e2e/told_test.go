//go:build unix

package e2e

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
)

var toldWithin = flag.Duration("told", 0,
	"TestHowLongUntilTold: for how long to wait until everybody tells of a fault; 0 skips it")

// told is how long it takes, in a cluster of three machines and two more nodes, until somebody is told of a fault, and
// what they read first. A place that tells nothing by -told is left empty. It makes no claim about time.
func TestHowLongUntilTold(t *testing.T) {
	if *toldWithin == 0 {
		t.Skip("takes minutes for each fault: -told=5m measures")
	}
	testenv.Program(t, "prometheus", "prometheus")
	for _, fault := range []struct {
		name string
		do   func(h *house)
	}{
		{"a node is killed", func(h *house) { h.kill(h.clients[1]) }},
		{"a node is frozen", func(h *house) { h.clients[1].signal(syscall.SIGSTOP) }},
		{"a node's clock is an hour ahead", func(h *house) { h.nodes[h.clients[1]].step(time.Hour) }},
		{"one of three machines is killed", func(h *house) { h.kill(h.quorum.list[2]) }},
		{"two of three machines are killed", func(h *house) { h.kill(h.quorum.list[1:]...) }},
		{"the disk of a machine is full", func(h *house) { h.fillDisk() }},
		{"all nodes are killed", func(h *house) { h.kill(append(h.clients, h.quorum.list...)...) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			h := newHouse(t)
			began := time.Now()
			fault.do(h)
			for _, place := range h.untilTold(began) {
				t.Logf("| %s | %s | %s | %s |", fault.name, place.name, place.after, place.text)
			}
		})
	}
}

// house is a cluster that somebody watches: by what its first machine says, and with Prometheus.
type house struct {
	t          *testing.T
	quorum     *keepers
	clients    []*keeper
	nodes      map[*keeper]*node
	dead       map[*keeper]bool
	prometheus string
	logged     map[string]bool // lines of logs from before the fault
}

func newHouse(t *testing.T) *house {
	h := &house{
		t: t, quorum: newKeepers(t, 3), nodes: map[*keeper]*node{}, dead: map[*keeper]bool{},
		logged: map[string]bool{},
	}
	for range 2 {
		h.clients = append(h.clients, h.quorum.local())
	}
	everybody := append(h.clients, h.quorum.list...)
	var scraped []string
	for _, k := range everybody {
		k.launch = func(args ...string) (process, *lines) {
			h.nodes[k] = start(t, firnSteppable, k.name, "", args...)
			return h.nodes[k], h.nodes[k].log
		}
		scraped = append(scraped, strings.TrimPrefix(k.admin, "http://"))
	}
	h.mountDisk(h.quorum.list[2])
	h.quorum.start()
	for _, k := range h.clients {
		k.startAs(append(h.quorum.quorum(), "--quorum-addr=none")...)
		k.ready()
	}
	h.startPrometheus(scraped)
	eventually(t, func() error {
		for _, p := range h.places() {
			if text := p.read(); text != "" {
				return fmt.Errorf("before the fault, %s: %s", p.name, text)
			}
		}
		return nil
	})
	h.warned() // what was logged at the start is not news
	return h
}

// disk is the size of the machine's disk that fillDisk fills.
const disk = "256m"

// mountDisk gives a machine a disk of its own.
func (h *house) mountDisk(k *keeper) {
	dir := filepath.Dir(k.dir)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=0755,size="+disk, "tmpfs", dir).
		CombinedOutput(); err != nil {
		h.t.Logf("no disk of its own: %v: %s", err, out)
		return
	}
	h.t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

func (h *house) fillDisk() {
	full := filepath.Join(filepath.Dir(h.quorum.list[2].dir), "full")
	if err := exec.Command("dd", "if=/dev/zero", "of="+full, "bs=64k").Run(); err == nil {
		h.t.Fatal("the disk is not full")
	}
}

func (h *house) kill(some ...*keeper) {
	crash(some...)
	for _, k := range some {
		h.dead[k] = true
	}
}

// startPrometheus starts one that scrapes as the generated configuration has it.
func (h *house) startPrometheus(scraped []string) {
	dir, address := h.t.TempDir(), proxytest.FixedAddress(h.t)
	for file, args := range map[string][]string{
		"prometheus.yml":  {"gen", "prometheus", "--nodes", strings.Join(scraped, ",")},
		"firn.rules.yaml": {"gen", "prometheus", "--rules"},
	} {
		out, err := h.quorum.firn(args...)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), []byte(out), 0o600)
		}
		if err != nil {
			h.t.Fatal(err, out)
		}
	}
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h.prometheus = "http://" + address
	eventually(h.t, func() error {
		var up struct {
			Data struct{ Result []struct{ Value []any } }
		}
		_, err := exchange(http.DefaultClient, http.MethodGet, h.prometheus+"/api/v1/query?query=sum(up)", "", &up)
		if err == nil && (len(up.Data.Result) != 1 || up.Data.Result[0].Value[1] != fmt.Sprint(len(scraped))) {
			err = fmt.Errorf("not all nodes are scraped: %+v", up)
		}
		return err
	})
}

// place is where a person looks. read returns the first thing that is said to be wrong there.
type place struct {
	name, text string
	after      time.Duration
	read       func() string
}

func (h *house) places() []*place {
	return []*place{
		{name: "status, page", read: h.status},
		{name: "doctor", read: h.doctor},
		{name: "log", read: h.warned},
		{name: "alert", read: h.alerts},
	}
}

// untilTold waits until all places tell of a fault.
func (h *house) untilTold(began time.Time) []*place {
	all := h.places()
	for left := len(all); left > 0 && time.Since(began) < *toldWithin; time.Sleep(250 * time.Millisecond) {
		for _, p := range all {
			if p.text != "" {
				continue
			}
			if p.text = p.read(); p.text != "" {
				p.after = time.Since(began).Round(100 * time.Millisecond)
				left--
			}
		}
	}
	return all
}

// status is the worst problem by the first machine, in what the command prints and the page shows.
func (h *house) status() string {
	var s struct {
		Problems []struct{ Effect, Cause string }
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext:       new(net.Dialer).DialContext,
		DisableKeepAlives: true,
	}, Timeout: 5 * time.Second}
	if _, err := exchange(client, http.MethodGet, h.quorum.list[0].admin+"/api/v1/cluster", "", &s); err != nil {
		return "(the command says:) " + err.Error()
	}
	if len(s.Problems) == 0 {
		return ""
	}
	return s.Problems[0].Effect + ": " + s.Problems[0].Cause
}

func (h *house) doctor() string {
	k := h.quorum.list[0]
	out, _ := h.quorum.firn(append(h.quorum.quorum(), "doctor", "--json", "--quorum-addr="+k.address,
		"--data-dir="+k.dir,
		"--http-addr="+strings.TrimPrefix(k.url, "http://"), "--admin-addr="+strings.TrimPrefix(k.admin, "http://"))...)
	var report struct {
		Findings []struct{ Level, About, Found, Do string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return out
	}
	for _, f := range report.Findings {
		if f.Level != "ok" && f.About != "clock" && f.About != "open files" { // both of this machine
			return fmt.Sprintf("%s: %s", f.About, cmp.Or(f.Found, f.Do))
		}
	}
	return ""
}

// message finds the message of a line of a log, and what follows.
var message = regexp.MustCompile(`level=(WARN|ERROR) msg=.*`)

// warned is the first new warning or error in a log of a node that lives.
func (h *house) warned() (text string) {
	for k, n := range h.nodes {
		for line := range strings.Lines(n.log.String()) {
			m := message.FindString(line)
			if m == "" || h.logged[line] {
				continue
			}
			h.logged[line] = true
			if !h.dead[k] && text == "" {
				text = m
			}
		}
	}
	return text
}

func (h *house) alerts() string {
	var found struct {
		Data struct {
			Alerts []struct {
				State               string
				Labels, Annotations map[string]string
			}
		}
	}
	if _, err := exchange(http.DefaultClient, http.MethodGet, h.prometheus+"/api/v1/alerts", "", &found); err != nil {
		return ""
	}
	for _, a := range found.Data.Alerts {
		if a.State == "firing" {
			return a.Labels["alertname"] + ": " + a.Annotations["summary"]
		}
	}
	return ""
}
