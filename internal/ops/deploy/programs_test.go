package deploy

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// needsRoot skips a test that may not have a network or a /run of its own.
func needsRoot(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "--net", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("it needs root, for a network and a /run of its own: %v: %s", err, out)
	}
}

// made puts the text of a kind into a file.
func made(t *testing.T, name string, k kind) string {
	t.Helper()
	text, err := k.Text(Origin{Version: "v0.0.0-test", Command: "firn gen test --nodes '[::1]:8080'"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// accepts runs a program that looks at a file, and fails the test unless it is content, and says nothing that we know
// to be a complaint.
func accepts(t *testing.T, path string, command ...string) string {
	t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	text, _ := os.ReadFile(path)
	if err != nil || strings.Contains(strings.ToLower(string(out)), "warning") {
		t.Errorf("%s: %v\n%s\n%s", strings.Join(command, " "), err, out, text)
	}
	return string(out)
}

func TestHAProxyAccepts(t *testing.T) {
	testenv.Program(t, "haproxy", "haproxy")
	full := samples()["haproxy"].(HAProxy)
	full.GRPCNodes[1], full.Nodes[1], full.RedisNodes[1] = "localhost:9090", "localhost:8080", "localhost:6379"
	full.Resolve = true
	six := NewHAProxy()
	six.Nodes, six.Listen, six.StatusListen = []string{"[2001:db8::1]:8080", "[2001:db8::2]:8080"},
		"[::]:8080", "[::1]:8404"
	plain := NewHAProxy()
	plain.Nodes = []string{"10.0.0.1:8080"}
	for name, h := range map[string]HAProxy{"full": full, "IPv6": six, "plain": plain} {
		for _, balance := range Balances {
			t.Run(name+" "+balance, func(t *testing.T) {
				h.Balance = balance
				path := made(t, "haproxy.cfg", h)
				accepts(t, path, "haproxy", "-c", "-f", path)
			})
		}
	}
}

func TestNginxAccepts(t *testing.T) {
	testenv.Program(t, "nginx", "nginx")
	needsRoot(t)
	full := samples()["nginx"].(Nginx)
	full.Nodes, full.GRPCNodes = []string{"10.0.0.1:8080", "[2001:db8::1]:8080"},
		[]string{"10.0.0.1:9090", "localhost:9090"}
	six := NewNginx()
	six.Nodes, six.Listen, six.Balance = []string{"[2001:db8::1]:8080"}, "[::]:8080", "least_conn"
	for name, n := range map[string]Nginx{"full": full, "IPv6": six} {
		t.Run(name, func(t *testing.T) {
			path := made(t, "nginx.conf", n)
			accepts(t, path, "unshare", "--mount", "sh", "-c", // it makes its pid file and its log
				`mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log && mkdir /var/log/nginx && exec nginx -t `+
					`-c "$0"`, path)
		})
	}
}

func TestKeepalivedAccepts(t *testing.T) {
	testenv.Program(t, "keepalived", "keepalived")
	testenv.Program(t, "ip", "iproute2")
	testenv.Program(t, "curl", "curl") // it looks whether the check can be run
	needsRoot(t)
	plain := NewKeepalived()
	plain.VIP = "10.0.0.100/24"
	six := NewKeepalived()
	six.VIP = "2001:db8::100/64"
	for name, k := range map[string]Keepalived{
		"plain": plain, "IPv6": six,
		"unicast": samples()["keepalived"].(Keepalived),
	} {
		t.Run(name, func(t *testing.T) {
			path := made(t, "keepalived.conf", k)
			// Its interface must be there. Keepalived 2.2.7 ends with a SIGTERM to itself when it has looked at a file
			// with scripts.
			out := accepts(t, path, "unshare", "--net", "sh", "-c",
				`ip link add eth0 type veth && trap "" TERM && exec keepalived -t -f "$0"`, path)
			if out != "" {
				t.Errorf("it says %s", out)
			}
		})
	}
}

// Balancers go on with the addresses that they have while DNS answers nothing, where nodes have names of /etc/hosts.
func TestBalancersOutliveDNS(t *testing.T) {
	testenv.Slow(t)
	for _, program := range []string{"haproxy", "nginx", "curl", "python3"} {
		testenv.Program(t, program, program)
	}
	testenv.Program(t, "ip", "iproute2")
	needsRoot(t)
	haproxy := NewHAProxy()
	haproxy.Nodes, haproxy.Listen = []string{"localhost:8081"}, "127.0.0.1:8080"
	resolving := haproxy
	resolving.Resolve = true
	nginx := NewNginx()
	nginx.Nodes, nginx.Listen = haproxy.Nodes, haproxy.Listen
	const haproxyStarts, nginxStarts = `mkdir /run/haproxy; haproxy -db -f "$0" & `, `nginx -g 'daemon off;' -c "$0" & `
	for name, program := range map[string]struct {
		config kind
		starts string
	}{
		"haproxy":           {haproxy, haproxyStarts},
		"haproxy, resolves": {resolving, haproxyStarts},
		"nginx":             {nginx, nginxStarts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const (
				machine = `mount -t proc proc /proc; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/log
					mkdir /var/log/nginx; ip link set lo up; mkdir /run/node
					echo nameserver 127.0.0.1 >/run/resolv.conf; mount --bind /run/resolv.conf /etc/resolv.conf
					echo ready >/run/node/readyz; python3 -m http.server -d /run/node 8081 >/dev/null 2>&1 & `
				asks = `
					until curl -sf http://127.0.0.1:8080/readyz; do kill -0 $! && sleep 0.05 || exit 1; done
					end=$(($(date +%s) + 65))
					while [ $(date +%s) -lt $end ]; do
						curl -sf --retry 2 http://127.0.0.1:8080/readyz || exit 1; sleep 0.5
					done`
			)
			out, err := exec.Command("timeout", "150", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
				"sh", "-c", machine+program.starts+asks, made(t, "config", program.config)).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// Each program does what it is for under limits of open files that are lower than it would like: those of a plain
// shell, and one that leaves it no choice.
func TestStartsWithFewOpenFiles(t *testing.T) {
	for _, program := range []string{"haproxy", "nginx", "keepalived", "curl"} {
		testenv.Program(t, program, program)
	}
	testenv.Program(t, "ip", "iproute2")
	needsRoot(t)
	haproxy := samples()["haproxy"].(HAProxy)
	haproxy.Nodes[1], haproxy.GRPCNodes[1], haproxy.RedisNodes[1] = "10.0.0.2:8080", "10.0.0.2:9090", "10.0.0.2:6379"
	nginx := samples()["nginx"].(Nginx)
	nginx.Nodes, nginx.GRPCNodes = haproxy.Nodes, haproxy.GRPCNodes
	keepalived := NewKeepalived()
	keepalived.VIP = "10.0.0.100/24"
	for name, program := range map[string]struct {
		config kind
		script string // starts it with the file $0, and ends without an error when it works
	}{
		"haproxy": {
			haproxy,
			`mkdir /run/haproxy; haproxy -db -f "$0" & until curl -sf http://127.0.0.1:8404/up; do kill -0 $! && ` +
				`sleep 0.05 || exit 1; done`,
		},
		"nginx": {
			nginx,
			`mkdir /var/log/nginx; nginx -g 'daemon off;' -c "$0" & until curl -s http://127.0.0.1:8080/; do kill -0 ` +
				`$! && sleep 0.05 || exit 1; done`,
		},
		"keepalived": {
			keepalived,
			`ip link add eth0 type veth; keepalived -n -l -f "$0" >/run/log 2>&1 & until grep 'Startup complete' ` +
				`/run/log; do kill -0 $! && sleep 0.05 || exit 1; done`,
		},
	} {
		for _, limits := range []string{"ulimit -Sn 1024", "ulimit -Sn 1024; ulimit -Hn 4096", "ulimit -n 256"} {
			t.Run(name+", "+limits, func(t *testing.T) {
				t.Parallel()
				path := made(t, name, program.config)
				const machine = `mount -t proc proc /proc; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/log; ` +
					`ip link set lo up; `
				out, err := exec.Command("timeout", "60", "unshare", "--mount", "--net", "--pid", "--fork",
					"--kill-child",
					"sh", "-c", machine+limits+"; "+program.script, path).CombinedOutput()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}

func TestSystemdAccepts(t *testing.T) {
	testenv.Program(t, "systemd-analyze", "systemd")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := NewSystemd()
	s.Binary = self // firn is not installed here, and what can't be run is an error
	path := made(t, "firn.service", s)
	if out := accepts(t, path, "systemd-analyze", "verify", "--man=no", path); out != "" {
		t.Errorf("it says:\n%s", out)
	}
	// Of 10, in tenths; systemd calls less than 2 safe.
	accepts(t, path, "systemd-analyze", "security", "--offline=yes", "--threshold=20", path)

	s.Watchdog, s.DrainDelay = 0, 90*time.Minute
	service := made(t, "firn.service", s)
	accepts(t, service, "systemd-analyze", "verify", "--man=no", service)

	for _, at := range []string{":8080", "127.0.0.1:80", "[::]:8080", "/run/firn.sock"} {
		socket := NewSystemdSocket()
		socket.Listen = at
		path = made(t, "firn-http.socket", socket)
		if out := accepts(t, path, "systemd-analyze", "verify", "--man=no", path, service); out != "" {
			t.Errorf("%s: it says:\n%s", at, out)
		}
	}
}

func TestPrometheusAccepts(t *testing.T) {
	testenv.Program(t, "promtool", "prometheus")
	p := samples()["prometheus"].(Prometheus)
	path := made(t, "prometheus.yml", p)
	rulePath := filepath.Join(filepath.Dir(path), p.RuleFile())
	if err := os.WriteFile(rulePath, []byte(Rules), 0o600); err != nil {
		t.Fatal(err)
	}
	p.TokenFile = rulePath // promtool looks whether it is there
	text, err := p.Text(origin)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	accepts(t, path, "promtool", "check", "config", path)
	accepts(t, rulePath, "promtool", "check", "rules", rulePath)
}

func TestAlertmanagerAccepts(t *testing.T) {
	testenv.Program(t, "amtool", "prometheus-alertmanager")
	path := filepath.Join(t.TempDir(), "alertmanager.yml")
	if err := os.WriteFile(path, []byte(Alertmanager), 0o600); err != nil {
		t.Fatal(err)
	}
	accepts(t, path, "amtool", "check-config", path)
}

// checker builds what checks manifests and Dockerfiles.
func checker(t *testing.T) string {
	t.Helper()
	source := filepath.Join("..", "..", "..", "tools", "check")
	files, err := filepath.Glob(filepath.Join(source, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no tools/check: %v", err)
	}
	for _, file := range files { // so that the go command runs this test again when one has changed
		_, _ = os.Stat(file)
	}
	path := filepath.Join(t.TempDir(), "check")
	if out, err := exec.Command("go", "-C", source, "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("building tools/check: %v: %s", err, out)
	}
	return path
}

// All manifests are of the types of Kubernetes, with no unknown field, and refer to each other as they should.
func TestKubernetesAccepts(t *testing.T) {
	testenv.Slow(t)
	check := checker(t)
	full := samples()["kubernetes"].(Kubernetes)
	full.GRPC, full.Redis = true, true
	inside := full
	inside.Etcd, inside.EtcdTLSSecret, inside.EtcdLoginSecret = nil, "", ""
	plain := NewKubernetes()
	plain.Image = full.Image
	etcd := plain
	etcd.Etcd = []string{"etcd-0.etcd:2379", "10.0.0.1:2380", "[2001:db8::1]:2380"}
	secured := etcd
	secured.EtcdTLSSecret = "etcd-tls"
	callers := etcd
	callers.TLSSecret = "firn-tls"
	quorum := plain
	quorum.Quorum = 3
	clients := inside
	clients.Quorum, clients.Replicas, clients.Name = 5, 7, "ids"
	stored := samples()["kubernetes on a store"].(Kubernetes)
	onlyStore := plain
	onlyStore.Store = testStore
	for name, k := range map[string]Kubernetes{
		"on a store": stored, "on a store, plain": onlyStore,
		"quorum": quorum, "quorum, full, with clients": clients,
		"full": full, "full, a quorum of one": inside, "etcd": etcd, "etcd over TLS": secured,
		"callers over TLS": callers, "plain": plain,
	} {
		t.Run(name, func(t *testing.T) {
			path := made(t, "firn.yaml", k)
			out := accepts(t, path, "sh", "-c", `exec "$0" kubernetes < "$1"`, check, path)
			if want := map[bool]string{
				true:  "apps/v1 Deployment ",
				false: "apps/v1 StatefulSet ",
			}[k.Remote()] + k.Name + "\n"; !strings.Contains(out, want) {
				t.Errorf("it has\n%s\nwant %s", out, want)
			}
		})
	}
}

// Docker compose reads its file, whose services name each other.
func TestComposeAccepts(t *testing.T) {
	testenv.Slow(t)
	check := checker(t)
	for _, quorum := range []int64{1, 3, 5} {
		for _, sample := range []string{"compose", "compose on a store"} {
			c := samples()[sample].(Compose)
			c.Quorum = quorum
			path := made(t, "compose.yaml", c)
			if out := accepts(t, path, "sh", "-c", `exec "$0" compose < "$1"`, check, path); strings.Count(out,
				"service firn-") != int(quorum) {
				t.Errorf("it has\n%s\nwant %d services", out, quorum)
			}
		}
	}
}

// BuildKit reads the Dockerfile, which names no image that could change, and what it says at its top builds a static
// firn.
func TestDockerfile(t *testing.T) {
	testenv.Slow(t)
	path := made(t, "Dockerfile", Docker{})
	if out := accepts(t, path, "sh", "-c", `exec "$0" dockerfile < "$1"`, checker(t), path); strings.Count(out,
		"FROM ") != 1 || !strings.HasPrefix(out, "FROM scratch\n") {
		t.Errorf("it has\n%s\nwant FROM scratch alone", out)
	}
	text, _ := os.ReadFile(path)
	_, command, found := strings.Cut(string(text), "#   CGO_ENABLED=0 go build ")
	command, _, _ = strings.Cut(command, "\n")
	if !found || !strings.Contains(command, "-o firn ") {
		t.Fatal("the Dockerfile does not say how to build firn")
	}
	binary := filepath.Join(t.TempDir(), "firn")
	build := exec.Command("sh", "-c",
		"CGO_ENABLED=0 go build "+strings.Replace(command, "-o firn ", "-o "+binary+" ", 1))
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	static(t, binary)
	if out, err := exec.Command(binary, "version").CombinedOutput(); err != nil ||
		!strings.HasPrefix(string(out), "firn ") {
		t.Errorf("firn version: %v: %s", err, out)
	}
}

// static checks that a program asks for no loader and no library.
func static(t *testing.T, path string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a %v: it is not static", p.Type)
		}
	}
}
