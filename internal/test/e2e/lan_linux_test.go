package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/firn-id/firn/internal/test/testenv"
)

// lan is a network of machines: a namespace of the kernel for each, and one more with a bridge, the switch that they
// are plugged into. Nothing of it can be seen from this machine's own network.
type lan struct {
	t       *testing.T
	machine map[string]*machine
	bridge  string // the namespace of the switch
}

// machine is one on a lan. It has an address, and processes that see no other network.
type machine struct {
	t         *testing.T
	lan       *lan
	name      string
	namespace string
	address   string
}

// lanPrefix is what the names of our namespaces begin with; the process that made them comes next.
const lanPrefix = "firn-test-"

// newLAN makes an empty network, which is gone when the test ends. The test is skipped where that may not be done.
func newLAN(t *testing.T) *lan {
	t.Helper()
	testenv.Program(t, "ip", "iproute2")
	if os.Geteuid() != 0 {
		t.Skip("it makes network namespaces, which needs root")
	}
	sweep()
	l := &lan{t: t, machine: map[string]*machine{}, bridge: fmt.Sprintf("%s%d-switch", lanPrefix, os.Getpid())}
	if out, err := exec.Command("ip", "netns", "add", l.bridge).CombinedOutput(); err != nil {
		t.Skipf("it may not make network namespaces: %v: %s", err, out)
	}
	t.Cleanup(func() { remove(l.bridge) })
	l.ip("-n", l.bridge, "link", "add", "bridge", "type", "bridge", "mcast_snooping", "0")
	l.ip("-n", l.bridge, "link", "set", "bridge", "up")
	return l
}

// sweep removes what tests left that could not clean up, since they were killed.
func sweep() {
	names, _ := filepath.Glob("/run/netns/" + lanPrefix + "*")
	for _, path := range names {
		name := filepath.Base(path)
		maker, _, _ := strings.Cut(strings.TrimPrefix(name, lanPrefix), "-")
		if pid, err := strconv.Atoi(maker); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			remove(name)
		}
	}
}

// remove ends every process in a namespace, and the namespace.
func remove(namespace string) {
	out, _ := exec.Command("ip", "netns", "pids", namespace).Output()
	for text := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(text); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = exec.Command("ip", "netns", "delete", namespace).Run()
}

func (l *lan) ip(args ...string) string {
	l.t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// plug plugs a machine into the switch.
func (l *lan) plug(name, address string) *machine {
	l.t.Helper()
	m := &machine{
		t: l.t, lan: l, name: name, namespace: fmt.Sprintf("%s%d-%s", lanPrefix, os.Getpid(), name),
		address: address,
	}
	l.machine[name] = m
	l.ip("netns", "add", m.namespace)
	l.t.Cleanup(func() { remove(m.namespace) })
	l.ip("-n", l.bridge, "link", "add", m.name, "type", "veth", "peer", "name", "eth0", "netns", m.namespace)
	l.ip("-n", l.bridge, "link", "set", m.name, "master", "bridge", "up")
	l.ip("-n", m.namespace, "address", "add", address+"/24", "dev", "eth0")
	l.ip("-n", m.namespace, "link", "set", "eth0", "up")
	l.ip("-n", m.namespace, "link", "set", "lo", "up")
	// The VIP is bound on the machine that does not have it, too.
	l.ip("netns", "exec", m.namespace, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind")
	return m
}

// cut takes the machine's cable out of the switch; mend puts it back.
func (m *machine) cut()  { m.lan.ip("-n", m.lan.bridge, "link", "set", m.name, "down") }
func (m *machine) mend() { m.lan.ip("-n", m.lan.bridge, "link", "set", m.name, "up") }

// has tells whether the machine has an address.
func (m *machine) has(address string) bool {
	return strings.Contains(m.lan.ip("-n", m.namespace, "-4", "-oneline", "address", "show", "dev", "eth0"),
		" "+address+"/")
}

// dial opens a connection from the machine.
func (m *machine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	type outcome struct {
		conn net.Conn
		err  error
	}
	dialed := make(chan outcome, 1)
	go func() {
		var o outcome
		if err := m.visit(func() { o.conn, o.err = new(net.Dialer).DialContext(ctx, network, address) }); err != nil {
			o.err = err
		}
		dialed <- o
	}()
	o := <-dialed
	return o.conn, o.err
}

// visit does something on a thread that is on the machine meanwhile. A socket stays where it was made.
func (m *machine) visit(do func()) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := os.Open("/run/netns/" + m.namespace)
	if err != nil {
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	do()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		return err // the thread stays locked: no other goroutine may use it
	}
	runtime.UnlockOSThread()
	return nil
}

// get asks a server from the machine.
func (m *machine) get(url string) (int, string, error) {
	transport := &http.Transport{DialContext: m.dial, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// load has callers on the machine take IDs at a URL, until finish.
func (m *machine) load(t *testing.T, l *ledger, url string) *audience {
	return newAudience(t, l, m.dial, url)
}

// program is a process on a machine.
type program struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	log    *lines
}

// run starts a program. It has a /run of its own, as on a machine of its own, which is empty again at the next start.
func (m *machine) run(name string, args ...string) *program {
	m.t.Helper()
	const alone = `mount -t tmpfs tmpfs /run && mkdir /run/haproxy && exec "$@"`
	p := &program{t: m.t, name: name + " on " + m.name, exited: make(chan struct{}), log: new(lines)}
	p.cmd = exec.Command("ip",
		append([]string{"netns", "exec", m.namespace, "sh", "-c", alone, "sh", name}, args...)...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	r, w, err := os.Pipe()
	if err != nil {
		m.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	w.Close()
	go func() {
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			p.log.add(scanner.Text())
		}
		r.Close()
	}()
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	m.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if m.t.Failed() {
			m.t.Logf("the log of %s:\n%s", p.name, p.log)
		}
	})
	return p
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// ended waits until the process has ended, and returns its exit status.
func (p *program) ended() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended:\n%s", p.name, p.log)
		return 0
	}
}

func (p *program) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.ended()
}
