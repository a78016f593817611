package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/pgstore"
	"github.com/firn-id/firn/store/quorum"
	"github.com/firn-id/firn/store/zkstore"
)

var errRefused = errors.New("refused")

var now = time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)

// healthy returns a machine and a cluster without a problem.
func healthy() Seen {
	return Seen{
		Now:    now,
		Clock:  &Clock{Synchronised: true, MaxError: 3 * time.Millisecond},
		Layout: Layout{"default", now.AddDate(60, 0, 0)},
		Files: []Certificate{{
			Flag: "tls-cert", Path: "server.pem", Until: now.AddDate(1, 0, 0), Key: "server.key",
			KeyMode: 0o640,
		}},
		Limit: &OpenFiles{Limit: 65536, Connections: 16384},
		Data: &DataDir{
			Path: "/var/lib/firn", Owner: "firn", Mode: 0o700,
			Room: &space.Room{Free: 50 << 30, Share: 0.5, Inodes: 1}, Fsync: time.Millisecond,
		},
		Ports: []Port{{Flag: "http-addr", Address: ":8080"}},
		Store: &Store{
			Kind: stores.Etcd, Place: "/firn", Read: time.Millisecond,
			Servers: []Server{etcd(), etcd(), etcd()},
		},
		Quorum: threeMachines(),
		Stored: &Stored{
			Status: threeMembers(), Clock: clocks.Verdict{Kind: clocks.Agreed, With: 2, Others: 2},
			Furthest: 25 * time.Second, Window: 30 * time.Second,
		},
		Node: &Node{URL: "http://localhost:8080"},
	}
}

// threeMembers returns the status of a cluster without a problem.
func threeMembers() *calls.Status {
	s := &calls.Status{At: now, Store: calls.StatusStore{Reached: true}}
	nodes := map[int64]string{}
	for i, id := range []string{"a", "b", "c"} {
		s.Members = append(s.Members, calls.StatusMember{
			ID:    id,
			Pulse: calls.Pulse{Alive: new(true), Owner: "ids-" + id, Fresh: true, Vitals: &peer.Vitals{Ready: true}},
		})
		nodes[int64(i)] = id
	}
	s.Sequencers = []calls.StatusSequencer{{
		Name: "default", Until: now.AddDate(60, 0, 0), Nodes: nodes, Free: new(int64(1021)),
	}}
	return s
}

// etcd returns a server of etcd, after it said something else of itself.
func etcd(says ...func(*etcdstore.ServerReport)) Server {
	r := etcdstore.ServerReport{Endpoint: "http://a:2379", Version: "3.6.9", Size: 20 << 20}
	for _, say := range says {
		say(&r)
	}
	return etcdServer(r)
}

// threeMachines returns a quorum without a problem, of which this machine is one.
func threeMachines() *Quorum {
	machine := func(address string) quorum.Machine {
		return quorum.Machine{
			Address: address, Role: quorum.Voter, Version: "v1.4.0", RoundTrip: 2 * time.Millisecond,
			Sync: time.Millisecond,
		}
	}
	return &Quorum{
		List: []string{"a:7420", "b:7420", "c:7420"},
		Inspection: quorum.Inspection{
			Self: "a:7420", Data: quorum.Data{Cluster: "x", State: "started"},
			Status: quorum.Status{
				Cluster: "x", Majority: true, Record: []string{"a:7420", "b:7420", "c:7420"},
				Machines: []quorum.Machine{machine("a:7420"), machine("b:7420"), machine("c:7420")},
			},
		},
	}
}

// Machines that are missing are said to be why there is no majority only if there would be one with them.
func TestWhyThereIsNoMajority(t *testing.T) {
	for down, want := range []struct{ found, toDo string }{
		{"This node gives no IDs: no majority of the machines of the quorum works yet", "Run firn quorum status"},
		{"This node gives no IDs: no majority of the machines of the quorum works yet", "Run firn quorum status"},
		{"Nodes stop giving IDs: 2 of 3 machines are down (b, c)", "Start one of them."},
		{"Nodes stop giving IDs: 3 of 3 machines are down (a, b, c)", "Start two of them."},
	} {
		q := threeMachines()
		q.Status.Majority, q.Status.Cluster = false, ""
		for i := range down {
			q.Status.Machines[2-i].Err = syscall.ECONNREFUSED.Error()
		}
		found := Seen{Now: now, Layout: healthy().Layout, Quorum: q}.cluster()
		if len(found) != 1 || found[0].Level != Fail || found[0].Found != want.found ||
			!strings.HasPrefix(found[0].Do, want.toDo) {
			t.Errorf("%d machines are down: %+v; want %q", down, found, want)
		}
	}
}

// One of three machines is up, and knows no voter but itself. What this process waits for, which is no machine, is not
// said.
func TestOneOfThreeIsUp(t *testing.T) {
	q := threeMachines()
	q.Status.Majority, q.Status.Record, q.Status.Waiting = false, nil, "it has not started yet"
	for i := range 2 {
		q.Status.Machines[1+i] = quorum.Machine{Address: q.List[1+i], Err: syscall.ECONNREFUSED.Error()}
	}
	found := Seen{Now: now, Layout: healthy().Layout, Quorum: q}.cluster()
	if len(found) != 1 || found[0].Level != Fail ||
		found[0].Found != "This node gives no IDs: no majority of the machines of the quorum works yet" ||
		!strings.HasPrefix(found[0].Do, "Start the machines that do not answer.") {
		t.Errorf("found %+v", found)
	}
}

func TestWhatIsHealthyIsOK(t *testing.T) {
	found := Check(healthy())
	if len(found) < 14 {
		t.Errorf("only %d findings: %v", len(found), found)
	}
	for _, f := range found {
		if f.Level != OK || f.Do != "" || f.About == "" || f.Found == "" {
			t.Errorf("%+v; want it to be ok, and nothing to do", f)
		}
	}
}

// Each problem gives exactly one finding that is not ok, with its value and what to do.
func TestEachWrongIsFound(t *testing.T) {
	for _, tt := range []struct {
		name        string
		wrong       func(s *Seen)
		level       Level
		found, toDo string
	}{
		{"clock that nobody keeps", func(s *Seen) { s.Clock.Synchronised = false }, Warn, "not synchronised", "chrony"},
		{"poor clock", func(s *Seen) { s.Clock.MaxError = 2 * time.Second }, Warn, "wrong by 2s", "time sources"},
		{"layout", func(s *Seen) {
			s.Stored, s.Layout.Until = nil, now.AddDate(0, 6, 0)
		}, Warn, "IDs for 181 days more: the time of its layout ends on 2027-05-21", "later epoch"},
		{"layout that ended", func(s *Seen) {
			s.Stored, s.Layout.Until = nil, now.AddDate(0, 0, -1)
		}, Fail, "Nobody gets IDs of default", "later epoch"},
		{"expired", func(s *Seen) {
			s.Files[0].Until = now.Add(-time.Hour)
		}, Fail, "server.pem expired on 2026-11-21", "renew"},
		{"expires", func(s *Seen) { s.Files[0].Until = now.AddDate(0, 0, 7) }, Warn, "expires in 7 days", "renew"},
		{"key for all", func(s *Seen) {
			s.Files[0].KeyMode = 0o644
		}, Warn, "server.key, mode 0644", "chmod o= server.key"},
		{"files", func(s *Seen) {
			s.Limit.Limit = 1024
		}, Warn, "at most 1024; 16384 connections of callers need 16896", "ulimit -n 16896"},
		{"no permission", func(s *Seen) {
			s.Data.Error = "permission denied"
		}, Fail, "/var/lib/firn: permission denied", "chown"},
		{"open directory", func(s *Seen) { s.Data.Mode = 0o755 }, Warn, "mode 0755", "chmod 700 /var/lib/firn"},
		{"hardly any room", func(s *Seen) {
			s.Data.Room.Free, s.Data.Room.Share = 9<<20, 0.04
		}, Fail, "9 MiB (4 %) are left", "Make room"},
		{"a fifth is left", func(s *Seen) {
			s.Data.Room.Free, s.Data.Room.Share = 3<<30, 0.19
		}, Warn, "3072 MiB (19 %) are left", "Make room"},
		{"hardly an inode is left", func(s *Seen) {
			s.Data.Room.Inodes = 0.04
		}, Fail, "4 % of the inodes", "Make room"},
		{"full", func(s *Seen) {
			s.Data.Error, s.Data.Full = "no space left on device", true
		}, Fail, "/var/lib/firn: no space left", "free some space"},
		{"slow disk", func(s *Seen) { s.Data.Fsync = 80 * time.Millisecond }, Warn, "takes 80ms", "faster"},
		{"port taken", func(s *Seen) { s.Ports[0].InUse = true }, Fail, ":8080: another program", "--http-addr"},
		{"port forbidden", func(s *Seen) {
			s.Ports[0].Error = "permission denied"
		}, Fail, ":8080: permission denied", "CAP_NET_BIND_SERVICE"},
		{"one of three down", func(s *Seen) {
			s.Store.Servers[1].Err = errRefused
		}, Warn, "no answer: refused", "start it"},
		{"old etcd", func(s *Seen) {
			s.Store.Servers[1] = etcd(func(r *etcdstore.ServerReport) { r.TooOld = errors.New("it is 3.5.0") })
		}, Fail, "it is 3.5.0", "upgrade"},
		{"alarm", func(s *Seen) {
			s.Store.Servers[2] = etcd(func(r *etcdstore.ServerReport) { r.Alarms = []string{"NOSPACE"} })
		}, Fail, "NOSPACE", "alarm disarm"},
		{"large", func(s *Seen) {
			s.Store.Servers[2] = etcd(func(r *etcdstore.ServerReport) { r.Size = 1500 << 20 })
		}, Warn, "1500 MiB", "defragment"},
		{"refused", func(s *Seen) {
			s.Store.Err = fmt.Errorf("read: %w: permission denied", store.ErrRefused)
		}, Fail, "permission denied", "readwrite /firn/"},
		{"away", func(s *Seen) { s.Store.Err = errors.New("not in time") }, Fail, "not in time", "endpoint status"},
		{"refused by PostgreSQL", func(s *Seen) {
			s.Store = &Store{
				Kind: stores.Postgres, Place: "ids",
				Err: fmt.Errorf("read: %w: permission denied", store.ErrRefused),
			}
		}, Fail, "permission denied", "access to the schema ids: firn gen sql --store"},
		{"a password that is wrong", func(s *Seen) {
			s.Store = &Store{
				Kind: stores.Postgres,
				Err:  fmt.Errorf("read: %w: password authentication failed (SQLSTATE 28P01)", store.ErrRefused),
			}
		}, Fail, "access refused: password authentication failed", "--postgres-password-file"},
		{"a user that a server does not know", func(s *Seen) {
			s.Store.Servers[1].Err = errors.New("authentication failed, invalid user ID or password")
		}, Fail, "invalid user", "--etcd-user"},
		{"a login that fails at ZooKeeper", func(s *Seen) {
			s.Store = &Store{
				Kind: stores.ZooKeeper,
				Err:  fmt.Errorf("connect: %w: zk:2181: the login failed", store.ErrRefused),
			}
		}, Fail, "access refused: zk:2181: the login failed", "--zookeeper-password-file"},
		{"a pooler", func(s *Seen) {
			s.Store = &Store{Kind: stores.Postgres, Err: fmt.Errorf("read: %w: there is a pooler", store.ErrRefused)}
		}, Fail, "access refused: there is a pooler", "correct that at the server"},
		{"a standby alone", func(s *Seen) {
			s.Store = &Store{Kind: stores.Postgres, Err: fmt.Errorf("read: %w: the server db is a standby: %w",
				store.ErrUnavailable, context.DeadlineExceeded)}
		}, Fail, "no answer: the server db is a standby", "its primary must run"},
		{"a store that is silent", func(s *Seen) {
			s.Store = &Store{
				Kind: stores.ZooKeeper,
				Err:  fmt.Errorf("connect: %w: %w", store.ErrUnavailable, context.DeadlineExceeded),
			}
		}, Fail, "no answer: no answer in time", "more than half"},
		{"PostgreSQL is full of connections", func(s *Seen) {
			server := postgresServer(pgstore.ServerReport{
				Server: "db:5432", Version: "15.6", Connections: 95,
				MaxConns: 100,
			})
			s.Store = &Store{Kind: stores.Postgres, Place: "firn", Servers: []Server{server}}
		}, Warn, "95 of its 100 connections", "max_connections"},
		{"PostgreSQL has a long transaction", func(s *Seen) {
			s.Store = &Store{
				Kind: stores.Postgres, Place: "firn",
				Wrong: postgresWrong(pgstore.Report{Oldest: time.Hour, Who: `process 17, "psql", active`}),
			}
		}, Warn, `open for 1h0m0s (process 17, "psql", active)`, "pg_terminate_backend"},
		{"PostgreSQL removes nothing", func(s *Seen) {
			s.Store = &Store{
				Kind: stores.Postgres, Place: "firn",
				Wrong: postgresWrong(pgstore.Report{Oldest: time.Second, Dead: 300_000}),
			}
		}, Warn, "keep 300000 former versions", "pg_replication_slots"},
		{"PostgreSQL is away", func(s *Seen) {
			s.Store = &Store{Kind: stores.Postgres, Err: errors.New("not in time")}
		}, Fail, "not in time", "its primary must run"},
		{"a server of ZooKeeper is down", func(s *Seen) {
			up := zookeeperServer(zkstore.ServerReport{Server: "zk-1:2181", Version: "3.8.0", Mode: "leader"})
			s.Store = &Store{
				Kind: stores.ZooKeeper, Place: "/firn",
				Servers: []Server{up, up, {Address: "zk-3:2181", Err: errRefused}},
			}
		}, Warn, "no answer: refused", "start it, or correct --store"},
		{"slow etcd", func(s *Seen) { s.Store.Read = 300 * time.Millisecond }, Warn, "takes 300ms", "disks"},
		{"few node IDs", func(s *Seen) {
			s.Stored.Status.Sequencers[0].Nodes, s.Stored.Status.Sequencers[0].Free = held(1000), new(int64(24))
		}, Warn, "Only 24 more nodes can give IDs of default: 1000 of its 1024", "more nodes"},
		{"used far ahead", func(s *Seen) {
			s.Stored.Furthest = time.Hour
		}, Warn, "until 1h0m0s from now", "nobody uses that node ID until then"},
		{"ahead", func(s *Seen) {
			s.Stored.Clock = clocks.Verdict{Kind: clocks.Ahead, Offset: time.Hour, Against: 2, Others: 2}
		}, Fail, "this machine's clock is 1h0m ahead of 2 of 2 others", "correct it"},
		{"behind", func(s *Seen) {
			s.Stored.Clock = clocks.Verdict{Kind: clocks.Behind, Offset: -time.Hour, Against: 2, Others: 2}
		}, Fail, "this machine's clock is 1h0m behind 2 of 2 others", "correct it"},
		{"a copied directory", func(s *Seen) {
			s.Data.Place = errors.New("d: it is a copy, or was moved; use the original")
		}, Fail, "it is a copy", "use the original"},
		{"no majority", func(s *Seen) {
			s.Stored.Clock = clocks.Verdict{Kind: clocks.Tied, With: 1, Against: 2, Others: 3}
		}, Warn, "no majority of the clocks agrees: 1 of 3", "correct the wrong clocks"},
		{"old pulses", func(s *Seen) {
			s.Stored.Clock.Kind = clocks.Unclear
		}, Warn, "have not reported their clocks lately", "reach the store"},
		{"another is behind", func(s *Seen) {
			*s.Stored.Status.Members[1].Vitals = peer.Vitals{
				Verdict: "behind", Offset: -time.Hour,
				Against: 2, Others: 2,
			}
		}, Warn, "ids-b gives no IDs: its clock is 1h0m behind 2 of 2 others", "Correct that clock"},
		{"another is gone", func(s *Seen) {
			*s.Stored.Status.Members[1].Alive, s.Stored.Status.Members[1].Fresh = false, false
		}, Warn, "ids-b is gone", "start it again"},
		{"not ready", func(s *Seen) {
			s.Node.Why = "no node ID is free"
		}, Fail, "is not ready: no node ID is free", "its log"},
		{"problem of another node", func(s *Seen) {
			s.Node.Status = told("b")
		}, Warn, "it gives no IDs: its clock is 1h0m behind 2 of 2 others", "Correct it. L"},
		{"problem of this node", func(s *Seen) {
			s.Node.Status = told("b", "a")
		}, Fail, "it gives no IDs: its clock is 1h0m behind 2 of 2 others", "Correct it. L"},
		{"problem of all nodes", func(s *Seen) {
			s.Node.Status = told()
		}, Fail, "it gives no IDs: its clock is 1h0m behind 2 of 2 others", "Correct it. L"},
		{"no data here", func(s *Seen) {
			s.Data.System = errors.New("a node can't keep data on windows; want Linux or macOS, or an etcd cluster " +
				"elsewhere")
		}, Fail, "can't keep data on windows", "etcd cluster elsewhere"},
		{"data of a quorum", func(s *Seen) {
			s.Data.Alone = errors.New("the directory d belongs to the quorum of a:1; start it with --quorum")
		}, Fail, "belongs to the quorum of a:1", "start it with --quorum"},
		{"no majority yet", func(s *Seen) {
			s.Quorum.Status.Majority = false
		}, Fail, "no majority of the machines of the quorum works yet", "Run firn quorum status"},
		{"several are this machine", func(s *Seen) {
			s.Quorum.SelfErr = errors.New("a and b are this machine")
		}, Fail, "a and b are", "--quorum-addr"},
		{"a machine has another key", func(s *Seen) {
			s.Quorum.Status.Machines[1].Role, s.Quorum.Status.Machines[1].Err, s.Quorum.Strangers = quorum.Learner,
				"b:7420 has another key than this machine; give all the same", []string{"b:7420"}
		}, Fail, "has another key than this machine", "give all the same"},
		{"another program is at its address", func(s *Seen) {
			s.Quorum.Status.Machines[1].Role, s.Quorum.Status.Machines[1].Err, s.Quorum.Strangers = quorum.Learner,
				"it answered 404", []string{"b:7420"}
		}, Fail, "it answered 404", "same key"},
		{"a machine waits", func(s *Seen) {
			s.Quorum.Status.Machines[1].Doing = "it is catching up"
		}, Warn, "waiting: it is catching up", "continues"},
		{"another is one of them", func(s *Seen) {
			s.Quorum.List[1] = "d:7420"
		}, Warn, "kept by a:7420,b:7420,c:7420, and --quorum is a:7420,d:7420,c:7420", "--quorum a:7420,b:7420,c:7420"},
		{"the disk of another is slow", func(s *Seen) {
			s.Quorum.Status.Machines[1].Sync = 1200 * time.Millisecond
		}, Warn, "The machine b of the quorum delays writes: its disk took 1s", "whether it is healthy"},
		{"a clock that others contradict", func(s *Seen) {
			s.Quorum.Status.Machines[1].Clock, s.Quorum.Status.Machines[2].Clock = -4*time.Second, 300*time.Millisecond
		}, Warn, "the clock of b:7420 is 4s behind 2 of 2 others", "on that machine"},
		{"a clock that others contradict by much", func(s *Seen) {
			s.Quorum.Status.Machines[2].Clock = time.Hour
		}, Warn, "the clock of c:7420 is 1h0m ahead of 2 of 2 others", "on that machine"},
		{"this clock, which others contradict", func(s *Seen) {
			s.Quorum.Status.Machines[1].Clock, s.Quorum.Status.Machines[2].Clock = time.Hour, time.Hour
		}, Fail, "the clock of this machine is 1h0m behind 2 of 2 others", "on that machine"},
		{
			"clocks of which no majority agrees", func(s *Seen) {
				s.Quorum.Status.Machines[1].Clock, s.Quorum.Status.Machines[2].Clock = time.Hour, -time.Hour
			}, Warn, "no majority of the machines' clocks agrees: that of b:7420 is 2h0m ahead of that of c:7420",
			"on all machines",
		},
		{"data of another cluster", func(s *Seen) {
			s.Quorum.Data.Cluster = "y"
		}, Fail, "belongs to cluster y, and the other machines to x", "a directory of its own"},
		{"data that is lost", func(s *Seen) {
			s.Quorum.Data.State = "lost"
		}, Warn, "its log is gone", "replaces itself"},
		{"data of a machine that was removed", func(s *Seen) {
			s.Quorum.Data.State = "removed"
		}, Warn, "was removed from cluster x", "firn quorum replace"},
		{"data that can't be read", func(s *Seen) {
			s.Quorum.DataErr = errors.New("quorum.json can't be read: x; restore it")
		}, Fail, "can't be read: x", "restore it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := healthy()
			tt.wrong(&s)
			var wrong []Finding
			for _, f := range Check(s) {
				if f.Level != OK {
					wrong = append(wrong, f)
				}
			}
			if len(wrong) != 1 || wrong[0].Level != tt.level || !strings.Contains(wrong[0].Found, tt.found) ||
				!strings.Contains(wrong[0].Do, tt.toDo) {
				t.Errorf("found %+v; want one %s with %q and %q", wrong, tt.level, tt.found, tt.toDo)
			}
		})
	}
}

// told is what a node a tells of a cluster in which the clock of these members is wrong.
func told(members ...string) *calls.Status {
	return &calls.Status{Member: "a", At: now, Problems: []calls.Problem{{
		Level: calls.Failing, Kind: calls.ClockProblem, Effect: "it gives no IDs",
		Cause: "its clock is 1h0m behind 2 of 2 others", Do: "Correct it.", Link: "L", Members: members,
	}}}
}

// held are so many node IDs that a member has.
func held(n int64) map[int64]string {
	all := map[int64]string{}
	for id := range n {
		all[id] = "a"
	}
	return all
}

// Where no node ID is free the next node gets none.
func TestNoNodeIDs(t *testing.T) {
	s := healthy()
	s.Stored.Status.Sequencers[0].Nodes, s.Stored.Status.Sequencers[0].Free = held(1024), new(int64(0))
	found := s.cluster()
	if len(found) != 3 || found[1].Level != Fail || found[1].Found != "none of 1024 is free in the default sequencer" ||
		!strings.Contains(found[1].Do, "--wait") ||
		found[2].Level != Warn || !strings.HasPrefix(found[2].Found, "No more nodes can give IDs of default") {
		t.Errorf("found %+v", found)
	}
}

// A machine that does not answer is told with its error, and what its loss is to the cluster.
func TestASilentMachine(t *testing.T) {
	s := healthy()
	// it has never told its role
	s.Quorum.Status.Machines[1] = quorum.Machine{Address: "b:7420", Err: syscall.ECONNREFUSED.Error()}
	var wrong []string
	for _, f := range Check(s) {
		if f.Level == Warn {
			wrong = append(wrong, f.About+": "+f.Found)
		}
	}
	if want := []string{
		"b:7420: no answer: connection refused",
		"cluster: The quorum can lose no other machine: 1 of 3 machines is down (b)",
	}; !slices.Equal(wrong, want) {
		t.Errorf("found %q; want %q", wrong, want)
	}
}

// Servers that are down fail the check if the others are no majority.
func TestTwoOfThreeDown(t *testing.T) {
	s := healthy()
	s.Store.Servers[0].Err, s.Store.Servers[1].Err = errRefused, errRefused
	fails := 0
	for _, f := range Check(s) {
		if f.Level == Fail {
			fails++
		}
	}
	if fails != 2 {
		t.Errorf("%d failures; want 2", fails)
	}
}

// Check has no findings about what was not examined, accepts a port in use by a node, and accepts values at a
// limit.
func TestLimitsOfChecks(t *testing.T) {
	if found := Check(Seen{Now: now, Layout: healthy().Layout}); len(found) != 1 {
		t.Errorf("found %v; want the layout only", found)
	}
	for _, f := range []Finding{
		Port{Flag: "http-addr", Address: ":8080", InUse: true, Firn: true}.check(),
		OpenFiles{Limit: 16384 + beside, Connections: 16384}.check(),
		Clock{Synchronised: true, MaxError: poorClock}.check(),
	} {
		if f.Level != OK {
			t.Errorf("%+v; want ok", f)
		}
	}
	silent := threeMachines() // before the first start of all: nothing has failed
	silent.Data, silent.Status.Cluster, silent.Status.Majority = quorum.Data{State: "empty"}, "", false
	for i := range silent.Status.Machines {
		silent.Status.Machines[i] = quorum.Machine{
			Address: silent.Status.Machines[i].Address,
			Err:     "connection refused",
		}
	}
	var levels strings.Builder
	for _, f := range append(silent.check(), Seen{Now: now, Layout: healthy().Layout, Quorum: silent}.cluster()...) {
		levels.WriteString(string(f.Level) + " ")
	}
	if levels.String() != "ok ok warn warn ok " {
		t.Errorf("of a quorum that has not begun: %s", levels.String())
	}
	q := threeMachines() // in doubt they are not
	q.Status.Machines[1].Clock, q.Status.Machines[1].RoundTrip = farClock+time.Second, 2*time.Second
	if f := q.checkClocks(); len(f) != 1 || f[0].Level != OK {
		t.Errorf("%+v; want one that is ok", f)
	}
	if found := new(Stored).check(); len(found) != 0 {
		t.Errorf("found %v; want nothing of clocks where there is no other node", found)
	}
}

// Whoever reads the keys that seal opens all sealed IDs.
func TestSealKeysThatOthersCanRead(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir, err := os.MkdirTemp("", "firn-doctor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path, tokens := filepath.Join(dir, "seal.keys"), filepath.Join(dir, "tokens.yaml")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, nil, 0o600),
		os.WriteFile(tokens, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o640: "",
		0o644: "everybody can read " + path + ", mode 0644",
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		c := Config{
			SealKeyFile: path, TokensFile: tokens,
			Choice: stores.Choice{Etcd: etcdstore.Config{Endpoints: []string{"127.0.0.1:1"}}},
		}
		all, err := c.Warnings()
		if err != nil || len(all) > 0 != (want != "") ||
			len(all) > 0 && (all[0].Found != want || all[0].About != AboutSealKeys || all[0].Do != "chmod o-r "+path) {
			t.Errorf("mode %v: %+v, %v; want %q", mode, all, err, want)
		}
	}
}
