package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/pgstore"
	"github.com/firn-id/firn/store/zkstore"
)

// Store is a store that other processes keep.
type Store struct {
	Kind    stores.Kind
	Servers []Server
	Read    time.Duration // duration of a read that must be current
	Err     error         // why it does not answer; store.ErrRefused: why it refuses a read or a write
	Place   string        // where firn's data is: a prefix of keys, a schema, a node of ZooKeeper
	Wrong   []Finding     // with its data
}

// Server is one server of a store.
type Server struct {
	Address string
	Err     error  // why it does not answer
	Says    string // what it is, such as "etcd 3.6.9, a database of 20 MiB"
	Took    time.Duration
	Wrong   []Finding
}

const (
	slowRead = 100 * time.Millisecond
	largeDB  = 1 << 30 // bytes: half of etcd's default quota
)

// manuals have the words for each kind of store, most of them what to do. A %s stands for the place of firn's data.
var manuals = map[stores.Kind]struct{ name, data, start, login, grant, away string }{
	stores.Etcd: {
		"etcd", "keys below %s/",
		"start it, or correct --etcd and, for TLS, --etcd-ca, --etcd-cert and --etcd-key",
		"correct --etcd-user and its password",
		"grant the user access: etcdctl role grant-permission ROLE --prefix=true readwrite %s/",
		"more than half of its servers must run and reach each other; etcdctl endpoint status --cluster shows them",
	},
	stores.ZooKeeper: {
		"ZooKeeper", "nodes below %s",
		"start it, or correct --store and, for TLS, --zookeeper-ca, --zookeeper-cert and --zookeeper-key",
		"correct the user in --store and the password in --zookeeper-password-file",
		"let the user create, delete, read and write below %s, see setAcl of zkCli.sh",
		"more than half of its servers must run and reach each other; the command srvr shows the state of each",
	},
	stores.Postgres: {
		"PostgreSQL", "tables in the schema %s",
		"start it, or correct --store and, for TLS, --postgres-ca, --postgres-cert and --postgres-key",
		"correct the user in --store, the password in --postgres-password-file, or the server's pg_hba.conf",
		"grant the role access to the schema %s: firn gen sql --store prints the statements",
		"its primary must run and be reached directly; psql with the same address shows whether it answers",
	},
}

// What errors of the stores' servers say, in the order etcd, ZooKeeper, PostgreSQL.
var (
	loginFailed = []string{"authentication failed", "the login failed", "SQLSTATE 28"}
	// of PostgreSQL alone, which refuses for other reasons, too
	noRight = []string{"permission denied", "has no right"}
)

func saysOneOf(err error, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(err.Error(), text) })
}

func (s Store) check() (all []Finding) {
	defer func() { all = append(all, s.Wrong...) }()
	m := manuals[s.Kind]
	down := 0
	for _, r := range s.Servers {
		if r.Err != nil {
			down++
		}
	}
	unreached := Fail
	if 2*down < len(s.Servers) { // the others are a majority
		unreached = Warn
	}
	for _, r := range s.Servers {
		switch {
		case r.Err != nil && saysOneOf(r.Err, loginFailed):
			all = append(all, Fail.about(r.Address, "%s", lastOf(r.Err)).do(m.login))
			continue
		case r.Err != nil:
			all = append(all, unreached.about(r.Address, "no answer: %s", lastOf(r.Err)).do(m.start))
			continue
		case r.Says != "":
			all = append(all, OK.about(r.Address, "%s, answers in %v", r.Says, r.Took.Round(10*time.Microsecond)))
		}
		all = append(all, r.Wrong...)
	}
	data := fmt.Sprintf(m.data, s.Place)
	switch {
	case errors.Is(s.Err, store.ErrRefused):
		do := fmt.Sprintf(m.grant, s.Place)
		switch {
		case saysOneOf(s.Err, loginFailed):
			do = m.login
		case s.Kind == stores.Postgres && !saysOneOf(s.Err, noRight):
			do = "correct that at the server, or give another --store"
		}
		return append(all, Fail.about(m.name, "access refused: %s", lastOf(s.Err)).do(do))
	case s.Err != nil:
		return append(all, Fail.about(m.name, "no answer: %s", lastOf(s.Err)).do(m.away))
	case s.Read > slowRead:
		return append(all,
			Warn.about(m.name, "can read and write %s; a read takes %v", data, s.Read.Round(time.Millisecond)).
				do(fmt.Sprintf("check %s's disks and network; joining waits for it, giving IDs does not", m.name)))
	}
	return append(all,
		OK.about(m.name, "can read and write %s; a read takes %v", data, s.Read.Round(10*time.Microsecond)))
}

// etcdServer is what a server of etcd says of itself.
func etcdServer(r etcdstore.ServerReport) Server {
	s := Server{Address: r.Endpoint, Err: r.Err, Took: r.Took}
	add := func(f Finding) { s.Wrong = append(s.Wrong, f) }
	if r.Err != nil {
		return s
	}
	if r.TooOld != nil {
		add(Fail.about(r.Endpoint, "%s", lastOf(r.TooOld)).do("upgrade it"))
	} else {
		s.Says = fmt.Sprintf("etcd %s, a database of %s", r.Version, bytes(r.Size))
	}
	for _, alarm := range r.Alarms {
		add(Fail.about(r.Endpoint, "alarm: %s", alarm).
			do("NOSPACE: compact and defragment it, or raise its quota, then etcdctl alarm disarm; CORRUPT: replace " +
				"the member"))
	}
	if r.Size > largeDB {
		add(Warn.about(r.Endpoint, "its database takes %s", bytes(r.Size)).
			do("compact it (--auto-compaction-retention) and defragment it, before it reaches its quota, by " +
				"default 2 GiB"))
	}
	return s
}

// zookeeperServer is what a server of ZooKeeper says of itself.
func zookeeperServer(r zkstore.ServerReport) Server {
	var says strings.Builder
	says.WriteString("ZooKeeper")
	for _, more := range []struct{ before, text string }{{" ", r.Version}, {", ", r.Mode}} {
		if more.text != "" {
			says.WriteString(more.before + more.text)
		}
	}
	return Server{Address: r.Server, Err: r.Err, Says: says.String(), Took: r.Took}
}

const (
	longTransaction = 10 * time.Minute
	manyDead        = 200_000 // rows
)

// postgresWrong is what keeps PostgreSQL from removing former versions of rows.
func postgresWrong(r pgstore.Report) (all []Finding) {
	const name = "PostgreSQL"
	if r.Oldest > longTransaction {
		all = append(all, Warn.about(name,
			"a transaction has been open for %v (%s): PostgreSQL keeps all rows written since, and lists of nodes "+
				"get slower",
			r.Oldest.Round(time.Minute),
			r.Who).do("end it, such as with SELECT pg_terminate_backend(PROCESS); idle_in_transaction_session_timeout "+
			"prevents the next"))
	}
	if r.Dead > manyDead {
		all = append(all, Warn.about(name, "its tables keep %d former versions of rows", r.Dead).
			do("look for what keeps them: a long transaction (GRANT pg_read_all_stats lets firn's role see those of "+
				"others), pg_prepared_xacts, pg_replication_slots, or autovacuum that is off"))
	}
	return all
}

// postgresServer is what a server of PostgreSQL says of itself.
func postgresServer(r pgstore.ServerReport) Server {
	s := Server{Address: r.Server, Err: r.Err, Took: r.Took}
	if r.Err != nil {
		return s
	}
	role := "primary"
	switch {
	case r.Standby:
		role = "standby"
	case r.Synchronous == "":
		role = "primary, without synchronous standbys"
	}
	s.Says = fmt.Sprintf("PostgreSQL %s, %s, %d of %d connections", r.Version, role, r.Connections, r.MaxConns)
	if r.MaxConns > 0 && r.Connections*10 > r.MaxConns*9 {
		s.Wrong = append(s.Wrong, Warn.about(r.Server, "%d of its %d connections are taken", r.Connections, r.MaxConns).
			do("raise max_connections, or find who holds the others; each node needs one"))
	}
	return s
}
