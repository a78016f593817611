package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/zktest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/pgstore"
	"github.com/firn-id/firn/store/quorum"
	"github.com/firn-id/firn/store/zkstore"
)

// service is one kind of store, with servers of its own.
type service struct {
	name  string
	alone bool // it serves one member alone

	// start starts it, empty, and returns what opens another client of it.
	start func(*starter) (open func() (store.Store, error))
}

var services = []service{
	{"memory", false, startMemory},
	{"a quorum of one", true, startSingle},
	{"etcd, 3 servers", false, startEtcds},
	{"quorum, 3 machines", false, startQuorum},
	{"PostgreSQL", false, startPostgres},
	{"ZooKeeper, 3 servers", false, startZooKeeper},
}

// runStores measures the same over each kind of store.
func runStores(ctx context.Context, s settings) ([]table, error) {
	costs := table{
		Title: "stores: what a member does over each kind of store, in ms",
		Note: "All servers run on this machine, so these are the costs of the store without a network. A claim " +
			"is two\n" +
			"reads and one transaction; extensions come in transactions of 64 fences. The first ID is that of the " +
			"first\n" +
			"member over an empty store, from the opening of its client on.",
		columns: []column{
			{"first_id_ms", "first ID", "%.0f"},
			{"claim_ms", "claim", "%.2f"},
			{"claim_64_ms", "64 claims", "%.0f"},
			{"claim_1000_ms", "1000 claims", "%.0f"},
			{"extend_ms", "extension", "%.2f"},
			{"extend_64_ms", "of 64", "%.1f"},
			{"extend_1000_ms", "of 1000", "%.0f"},
		},
	}
	idle := table{
		Title: fmt.Sprintf("stores: %d members join at once; and what a cluster of %d that do nothing costs",
			s.joining, s.idling),
		Note: "Each member has its own client. A transaction is one that changes something; a message is what " +
			"clients send\n" +
			"in one piece, where they have connections of their own. A third is a third of the window of " +
			fence.DefaultWindow.String() + ".",
		columns: []column{
			{"join_s", "join in s", "%.1f"},
			{"transactions_per_second", "transactions/s", "%.1f"},
			{"transactions_per_third", "per member and third", "%.2f"},
			{"messages_per_second", "messages/s", "%.0f"},
			{"messages_per_member_second", "per member and s", "%.2f"},
		},
	}
	for _, k := range services {
		costsBefore, idleBefore := costs, idle
		skipped, err := measureService(ctx, s, k, &costs, &idle)
		// Its servers may have got no CPU for a while.
		for again := 0; errors.Is(err, store.ErrUnavailable) && again < 2; again++ {
			s.tell("stores, %s: again, after: %v", k.name, err)
			costs, idle = costsBefore, idleBefore
			skipped, err = measureService(ctx, s, k, &costs, &idle)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		if skipped != "" {
			costs.Note += fmt.Sprintf("\nSkipped, %s: %s", k.name, skipped)
		}
	}
	return []table{costs, idle}, nil
}

func measureService(ctx context.Context, s settings, k service, costs, idle *table) (skipped string, err error) {
	return guarded(ctx, func(on *starter) error { return measureOver(ctx, s, on, k, costs, idle) })
}

func measureOver(ctx context.Context, s settings, on *starter, k service, costs, idle *table) error {
	s.tell("stores, %s: starting", k.name)
	open := k.start(on)
	var values []float64
	began := time.Now()
	first, err := join(ctx, open, 0)
	if err != nil {
		return err
	}
	values = append(values, ms(time.Since(began)))
	s.tell("stores, %s: first ID after %.0f ms", k.name, values[0])
	first.leave()
	fences, err := fenceCosts(ctx, s, open)
	if err != nil {
		return err
	}
	costs.add(k.name, append(values, fences...)...)
	if k.alone {
		return nil
	}
	s.tell("stores, %s: %d members join", k.name, s.joining)
	row, err := joinAndRest(ctx, s, on, open)
	if err != nil {
		return err
	}
	idle.add(k.name, row...)
	idle.Targets = append(idle.Targets,
		atMost(fmt.Sprintf("s until %d members have joined over %s", s.joining, k.name), row[0], 60),
		atMost("transactions of an idle member in a third of a window over "+k.name, row[2], 1.05))
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// joined is a member with a client of its own.
type joined struct {
	*peer.Member
	store *commitCounter
}

func (j *joined) leave() {
	j.Leave()
	_ = j.store.Close()
}

// join has a member join and make an ID.
func join(ctx context.Context, open func() (store.Store, error), number int) (*joined, error) {
	client, err := open()
	if err != nil {
		return nil, err
	}
	j := &joined{store: &commitCounter{Store: client}}
	if j.Member, err = peer.Join(ctx, j.store, peer.Options{Owner: fmt.Sprint("member ", number)}); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	q, err := j.EnsureSequencer(ctx, "orders", cluster.Define(firn.Default))
	if err == nil {
		_, err = q.Next(ctx)
	}
	if err != nil {
		j.leave()
		return nil, err
	}
	return j, nil
}

// fenceCosts measures claims and extensions of 1, 64 and 1000 fences.
func fenceCosts(ctx context.Context, s settings, open func() (store.Store, error)) ([]float64, error) {
	client, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	session, err := client.OpenSession(ctx, 15*time.Second)
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close(ctx) }()
	var ahead atomic.Int64
	config := fence.Config{
		Store: client, Prefix: "bench/", Owner: "bench",
		Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}
	claims := []float64{math.NaN(), math.NaN(), math.NaN()}
	extensions := []float64{math.NaN(), math.NaN(), math.NaN()}
	var fences []*fence.Fence
	var times []float64
	for i, many := range []int{1, 64, 1000} {
		if many > s.fences {
			break
		}
		began := time.Now()
		var all []*fence.Fence
		for range many {
			one := time.Now()
			f, err := fence.Claim(ctx, config, session, int64(len(fences)))
			if err != nil {
				return nil, err
			}
			times = append(times, ms(time.Since(one)))
			fences, all = append(fences, f), append(all, f)
		}
		claims[i] = ms(time.Since(began))
		var rounds []float64
		for range s.extensions {
			ahead.Add(int64(time.Second)) // so that there is something to write
			one := time.Now()
			for _, err := range fence.ExtendAll(ctx, all) {
				if err != nil {
					return nil, err
				}
			}
			rounds = append(rounds, ms(time.Since(one)))
		}
		extensions[i] = median(rounds)
	}
	claims[0] = median(times)
	return append(claims, extensions...), nil
}

// joinAndRest has members join, most of them leave, and counts what the others cost.
func joinAndRest(ctx context.Context, s settings, on *starter, open func() (store.Store, error)) ([]float64, error) {
	members, errs := make([]*joined, s.joining), make([]error, s.joining)
	began := time.Now()
	var all sync.WaitGroup
	for i := range members {
		all.Go(func() { members[i], errs[i] = join(ctx, open, i) })
	}
	all.Wait()
	took := time.Since(began)
	stay := members[:min(s.idling, len(members))]
	defer func() {
		for _, m := range members {
			if m != nil {
				all.Go(m.leave)
			}
		}
		all.Wait()
	}()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.tell("stores: joined in %.1f s, now %d rest", took.Seconds(), len(stay))
	for i := len(stay); i < len(members); i++ {
		all.Go(func() {
			members[i].leave()
			members[i] = nil
		})
	}
	all.Wait()
	if err := retry.Sleep(ctx, s.rest/2); err != nil { // what the leaving began is over then
		return nil, err
	}
	commits := func() (n int) {
		for _, m := range stay {
			n += len(m.store.all())
		}
		return n
	}
	before, messages, at := commits(), on.messages.Load(), time.Now()
	if err := retry.Sleep(ctx, s.rest); err != nil {
		return nil, err
	}
	seconds := time.Since(at).Seconds()
	transactions := float64(commits()-before) / seconds
	sent := math.NaN()
	if on.counts {
		sent = float64(on.messages.Load()-messages) / seconds
	}
	per := float64(len(stay))
	return []float64{
		took.Seconds(), transactions, transactions / per * fence.DefaultWindow.Seconds() / 3, sent,
		sent / per,
	}, nil
}

func startMemory(*starter) func() (store.Store, error) {
	svc := memstore.NewService()
	return func() (store.Store, error) { return svc.Client("bench"), nil }
}

func startSingle(s *starter) func() (store.Store, error) {
	q, err := quorum.One(quorum.Config{Dir: filepath.Join(s.TempDir(), "data")})
	s.must(err)
	s.Cleanup(q.Close)
	s.must(q.Start())
	return func() (store.Store, error) { return q.Open(context.Background()) }
}

func startEtcds(s *starter) func() (store.Store, error) {
	s.must(os.Chdir("..")) // where the module is whose tool the server is
	defer func() { s.must(os.Chdir("bench")) }()
	var addresses []string
	for _, server := range etcdtest.StartCluster(s, 3, etcdtest.Options{}) {
		addresses = append(addresses, s.counted(server.Address()))
	}
	return func() (store.Store, error) { return etcdstore.Open(etcdstore.Config{Endpoints: addresses}) }
}

func startQuorum(s *starter) func() (store.Store, error) {
	dir := s.TempDir()
	key := filepath.Join(dir, "key")
	s.must(os.WriteFile(key, []byte(quorum.NewKey()+"\n"), 0o600))
	addresses := []string{proxytest.FixedAddress(s), proxytest.FixedAddress(s), proxytest.FixedAddress(s)}
	var machines []*quorum.Quorum
	for i, self := range addresses {
		machine, err := quorum.New(quorum.Config{
			Machines: addresses, Self: self, Listen: self, KeyFile: key, Dir: filepath.Join(dir, fmt.Sprint(i)),
		})
		s.must(err)
		s.Cleanup(machine.Close)
		s.must(machine.Start())
		machines = append(machines, machine)
	}
	var next atomic.Int64
	return func() (store.Store, error) {
		return machines[int(next.Add(1))%len(machines)].Open(s.ctx)
	}
}

func startPostgres(s *starter) func() (store.Store, error) {
	server := dbtest.StartPostgres(s, "max_connections=1000")
	s.Cleanup(dbtest.RemoveTemplates)
	url := strings.Replace(server.URL("postgres"), server.Address(), s.counted(server.Address()), 1)
	return func() (store.Store, error) { return pgstore.Open(pgstore.Config{URL: url}) }
}

func startZooKeeper(s *starter) func() (store.Store, error) {
	var addresses []string
	for _, server := range zktest.StartQuorum(s, 3) {
		addresses = append(addresses, s.counted(server.Address()))
	}
	return func() (store.Store, error) { return zkstore.Open(zkstore.Config{Servers: addresses}) }
}
