//go:build unix

package e2e

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/test/testenv"
)

// serveRedis starts a node on its own that has a sequencer named orders, and returns where Redis clients find it.
func serveRedis(t *testing.T, l *ledger) (n *node, address string) {
	t.Helper()
	n = serve(t, "node", "--data-dir="+t.TempDir(), "--redis-addr=127.0.0.1:0")
	n.ready(t, l)
	if _, err := n.call("POST", sequencers, `{"name":"orders","nodes":4}`, nil); err != nil {
		t.Fatal(err)
	}
	return n, n.listens("redis_addr")
}

// redisTool runs a program of Debian's redis-tools against a node, and returns what it prints.
func redisTool(t *testing.T, address, stdin, name string, args ...string) string {
	t.Helper()
	path := testenv.Program(t, name, "redis-tools")
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command(path, append([]string{"-p", port}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %q: %v", name, args, err)
	}
	return strings.TrimRight(string(out), "\n")
}

// The client that everybody has, as people and scripts use it.
func TestRedisCLI(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	_, address := serveRedis(t, new(ledger))
	for _, tt := range []struct {
		args []string
		want string // a regular expression
	}{
		{[]string{"ping"}, `PONG`},
		{[]string{"incr", "default"}, `\d+`},
		{[]string{"incr", "orders"}, `\d+`},
		{[]string{"incrby", "default", "1"}, `\d+`},
		{[]string{"--no-raw", "firn.id", "orders"}, `"\d+"`},
		{[]string{"--no-raw", "firn.ids", "orders", "2"}, `1\) "\d+"\n2\) "\d+"`},
		{[]string{"firn.next", "orders", "2"}, `\d+\n\d+`},
		{[]string{"--no-raw", "firn.next", "orders", "2"}, `1\) \(integer\) \d+\n2\) \(integer\) \d+`},
		{
			[]string{"-3", "--json", "firn.decode", "4398046511104"},
			`\{"time":"2026-01-01T00:17:28.576Z","id_str":"4398046511104","id":4398046511104,.*\}`,
		},
		{
			[]string{"--no-raw", "firn.decode", "orders", "5"},
			`(?s) 1\) "time"\n 2\) "2026-.*17\) "sequence"\n18\) \(integer\) 5`,
		},
		{[]string{"incr", "nothing"}, `UNKNOWNSEQUENCER .*`},
		{[]string{"incrby", "default", "0"}, `ERR can't increment by '0': .*`},
		{[]string{"set", "a", "b"}, `ERR unknown command 'set', with args beginning with: 'a' 'b' `},
		{
			[]string{"info", "firn"},
			`(?s)# Firn\r\nready:yes\r\ncluster:[a-z2-7]+\r\nsequencer:default\r\nstate:attached\r\nnode:\d+\r.*`,
		},
		{[]string{"command", "count"}, `\d+`},
	} {
		got := strings.TrimRight(redisTool(t, address, "", "redis-cli", tt.args...), "\n")
		if !regexp.MustCompile(`^` + tt.want + `$`).MatchString(got) {
			t.Errorf("%q: %q, want %s", tt.args, got, tt.want)
		}
	}
	if got := redisTool(t, address, "hello 3\nincr \"default\"\nquit\n",
		"redis-cli"); !regexp.MustCompile(`\n\d{15,}$`).MatchString(got) {
		t.Errorf("from standard input: %s", got)
	}
}

// The benchmark that everybody has complains about nothing.
func TestRedisBenchmark(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	_, address := serveRedis(t, new(ledger))
	for _, args := range [][]string{
		{"-P", "16", "-c", "20", "-n", "20000", "--csv", "incr", "default"},
		{"-c", "5", "-n", "1000", "--csv", "firn.next", "orders", "10"},
	} {
		got := redisTool(t, address, "", "redis-benchmark", args...)
		if lower := strings.ToLower(got); strings.Contains(lower, "warning") || strings.Contains(lower, "error") ||
			!strings.Contains(got, `"rps"`) {
			t.Errorf("%q: %s", args, got)
		}
	}
}

// A library that programs use, in both versions of the protocol: it gets IDs from any number of goroutines, alone, in
// pipelines, in runs and in lists, and all of them once, with those that others get over HTTP.
func TestGoRedis(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	l, orders := new(ledger), new(ledger)
	n, address := serveRedis(t, l)
	load := n.load(t, l, 2)
	var all sync.WaitGroup
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol, ClientName: "e2e", MaxRetries: -1})
		defer client.Close()
		ctx := t.Context()
		if pong, err := client.Ping(ctx).Result(); pong != "PONG" || err != nil {
			t.Fatalf("PING: %q, %v", pong, err)
		}
		if name, err := client.ClientGetName(ctx).Result(); name != "e2e" || err != nil {
			t.Errorf("its name is %q, %v", name, err)
		}
		if info, err := client.Info(ctx, "firn").Result(); !strings.Contains(info, "ready:yes") {
			t.Errorf("INFO: %q, %v", info, err)
		}
		if commands, err := client.Command(ctx).Result(); err != nil || commands["incr"] == nil ||
			commands["incr"].FirstKeyPos != 1 {
			t.Errorf("COMMAND: %v, %v", commands, err)
		}
		parts, err := client.Do(ctx, "FIRN.DECODE", 4398046511104).Result()
		if m, ok := parts.(map[any]any); err != nil || ok != (protocol == 3) ||
			ok && m["time"] != "2026-01-01T00:17:28.576Z" {
			t.Errorf("FIRN.DECODE: %v, %v", parts, err)
		}
		if err := client.Incr(ctx, "nothing").Err(); !redis.HasErrorPrefix(err, "UNKNOWNSEQUENCER") {
			t.Errorf("INCR nothing: %v", err)
		}
		for range 3 {
			all.Go(func() {
				for range 50 {
					one, err := client.Incr(ctx, "default").Result()
					if err != nil {
						t.Errorf("INCR: %v", err)
						return
					}
					l.add([]int64{one})
					other, err := client.IncrBy(ctx, "default", 1).Result()
					if err != nil {
						t.Errorf("INCRBY: %v", err)
						return
					}
					l.add([]int64{other})
					replies, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
						for i := range 40 {
							p.Incr(ctx, []string{"default", "orders"}[i/20])
						}
						return nil
					})
					if err != nil {
						t.Errorf("a pipeline: %v", err)
						return
					}
					for i, r := range replies {
						[]*ledger{l, orders}[i/20].add([]int64{r.(*redis.IntCmd).Val()})
					}
					list, err := client.Do(ctx, "FIRN.NEXT", "orders", "500").Int64Slice()
					if err != nil {
						t.Errorf("FIRN.NEXT: %v", err)
						return
					}
					orders.add(list)
				}
			})
		}
	}
	all.Wait()
	if refused := load.finish(); len(refused) != 0 {
		t.Errorf("over HTTP: %v", refused)
	}
	l.unique(t, 6*50*(1+1+20))
	orders.unique(t, 6*50*(20+500))
}

// SIGTERM ends a node with Redis clients: all that they have sent before is answered.
func TestRedisClientsWhenANodeStops(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	n, address := serveRedis(t, new(ledger))
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer client.Close()
	if err := client.Incr(t.Context(), "default").Err(); err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := n.ended(); status != 0 || strings.Contains(n.log.String(), "cut off") {
		t.Errorf("status %s:\n%s", strconv.Itoa(status), n.log)
	}
	if err := client.Incr(t.Context(), "default").Err(); err == nil {
		t.Error("somebody answers")
	}
}
