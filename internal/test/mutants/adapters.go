package main

// ordered is the part of the contract of stores that looks for one order of what concurrent clients saw.
const ordered = "^TestContract$/^what_clients_saw_has_one_order$"

// doubted is the test of commits whose connection breaks. What it finds each time, ordered finds most times.
const doubted = "^TestACommitInDoubt$"

// Every second read of a key returns what an earlier one found.
const (
	get      = "func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {\n"
	staleGet = `var past = make(chan map[string]store.KV, 1)

func init() { past <- map[string]store.KV{} }

func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	found := <-past
	defer func() { past <- found }()
	if kv, ok := found[key]; ok {
		delete(found, key)
		return kv, nil
	}
	kv, err := s.get(ctx, key)
	if err == nil {
		found[key] = kv
	}
	return kv, err
}

func (s *Store) get(ctx context.Context, key string) (store.KV, error) {
`
)

// adapters are the faults of adapters of stores that lose or repeat writes, or mix two logs; quorums of three and of
// one are etcdstore's.
var adapters = []mutant{
	{"etcd: a stale read", "store/etcdstore/keys.go", get, staleGet, "./store/etcdstore", ordered},
	{"PostgreSQL: a stale read", "store/pgstore/keys.go", get, staleGet, "./store/pgstore", ordered},
	{"ZooKeeper: a stale read", "store/zkstore/keys.go", get, staleGet, "./store/zkstore", ordered},
	{
		"etcd: a lost condition", "store/etcdstore/keys.go",
		`"=", int64(c.Version)))`, `">", int64(-1)))`,
		"./store/etcdstore", ordered,
	},
	{
		"PostgreSQL: a lost condition", "store/pgstore/keys.go",
		"coalesce(keys.version, 0) <> wanted.version) THEN", "coalesce(keys.version, 0) < wanted.version) THEN",
		"./store/pgstore", ordered,
	},
	{
		"ZooKeeper: a lost condition", "store/zkstore/commit.go",
		"wire.Check(path, writes)", "wire.Check(path, wire.AnyVersion)",
		"./store/zkstore", ordered,
	},
	{
		"etcd: a commit that was not answered is sent again", "store/etcdstore/keys.go",
		"Then(ops...).Commit()\n",
		"Then(ops...).Commit()\n	for err != nil && ctx.Err() == nil {\n" +
			"		resp, err = conn.Txn(ctx).If(conditions...).Then(ops...).Commit()\n	}\n",
		"./store/etcdstore", doubted,
	},
	{
		"etcd: a watch outlives its connection", "store/etcdstore/connections.go",
		"		close(c.newer)\n", "",
		"./store/etcdstore", "^TestAWatchOfAnotherLog$",
	},
	{
		"PostgreSQL: a commit that was not answered is sent again", "store/pgstore/keys.go",
		"	w, err := s.write(ctx, call, verdict, then)\n",
		"	w, err := s.write(ctx, call, verdict, then)\n" +
			"	for errors.Is(err, store.ErrAmbiguous) && ctx.Err() == nil {\n" +
			"		w, err = s.write(ctx, call, verdict, then)\n	}\n",
		"./store/pgstore", doubted,
	},
	{
		"PostgreSQL: emptied keys are not noticed", "store/pgstore/schema.go",
		"EXISTS (SELECT FROM keys WHERE key = '') AND ", "",
		"./store/pgstore", "^TestATableIsEmptied$/^keys_is_deleted$",
	},
	{
		"PostgreSQL: the floor is not written", "store/pgstore/trust.go",
		"@value::bytea, revision, revision\n				FROM latest WHERE ` + guard + `\n" +
			"				ON CONFLICT (key) DO UPDATE",
		"@value::bytea, revision, revision\n				FROM latest WHERE false AND ` + guard + `\n" +
			"				ON CONFLICT (key) DO UPDATE",
		"./store/pgstore", "^TestATableIsEmptied$/^keys_is_deleted$",
	},
	{
		"ZooKeeper: a commit that was not answered is sent again", "store/zkstore/commit.go",
		"		return 0, wrap(call, store.ErrAmbiguous, err)\n	}\n}\n",
		"		if ctx.Err() == nil {\n			continue\n		}\n" +
			"		return 0, wrap(call, store.ErrAmbiguous, err)\n	}\n}\n",
		"./store/zkstore", "^TestServer$/^a_transaction_in_doubt$",
	},
}
