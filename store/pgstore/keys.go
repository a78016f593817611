package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/answers"
)

// Get reads one key, see store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	if err := store.ValidateKey(key); err != nil {
		return store.KV{}, err
	}
	var found *keyRow
	if _, err := s.read(ctx, "get "+key, func(m *message) {
		maybe(m, &found, "SELECT key, value, version FROM keys WHERE key = @key", args{"key": binary(key)})
	}); err != nil {
		return store.KV{}, err
	}
	if found == nil {
		return store.KV{Key: key}, nil
	}
	got := found.kv()
	if got.Key != key || got.Version <= 0 {
		return store.KV{}, callError("get "+key,
			fmt.Errorf("the server answers the key %.80q at version %d; want %q", got.Key, got.Version, key))
	}
	return got, nil
}

// List reads every key with a prefix, see store.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]store.KV, error) {
	if err := store.ValidatePrefix(prefix); err != nil {
		return nil, err
	}
	var found []keyRow
	if _, err := s.read(ctx, "list "+prefix, func(m *message) {
		a := args{"from": binary(prefix), "to": nil}
		if end := after(prefix); end != "" {
			a["to"] = binary(end)
		}
		several(m, &found,
			"SELECT key, value, version FROM keys WHERE key > '' AND key >= @from AND (@to::bytea IS NULL OR key < "+
				"@to::bytea) ORDER BY key", a)
	}); err != nil {
		return nil, err
	}
	kvs := make([]store.KV, len(found))
	for i := range kvs {
		kvs[i] = found[i].kv()
	}
	if err := answers.Keys(prefix, kvs); err != nil {
		return nil, callError("list "+prefix, err)
	}
	return kvs, nil
}

// after is the first key after all that begin with prefix; empty: there is none.
func after(prefix string) string {
	for end := []byte(prefix); len(end) > 0; end = end[:len(end)-1] {
		if end[len(end)-1] < 0xff {
			end[len(end)-1]++
			return string(end)
		}
	}
	return ""
}

type keyRow struct {
	Key, Value []byte
	Version    int64
}

func (r keyRow) kv() store.KV {
	return store.KV{Key: string(r.Key), Value: r.Value, Version: store.Version(r.Version)}
}

// Commit applies a transaction, see store.Store. It is sent at most once.
func (s *Store) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	const call = "commit"
	if err := txn.Validate(); err != nil {
		return 0, err
	}
	verdict, then, err := translate(txn)
	if err != nil {
		return 0, err
	}
	w, err := s.write(ctx, call, verdict, then)
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, store.ErrUnavailable):
		return 0, wrap(call, store.ErrAmbiguous, ctx.Err())
	case err != nil:
		return 0, err
	case w.verdict == conflict:
		return 0, fmt.Errorf("%s: %w", call, store.ErrConflict)
	case w.verdict == ended:
		return 0, fmt.Errorf("%s: %w", call, store.ErrSessionEnded)
	}
	return store.Version(w.revision), nil
}

// translate returns the verdict and the statements of a transaction.
func translate(txn store.Txn) (verdict, func(*message), error) {
	v := verdict{args: args{}}
	cases := []string{"false THEN 0"}
	if len(txn.If) > 0 {
		wanted := make([]string, len(txn.If))
		for i, c := range txn.If {
			wanted[i] = "(" + v.bind(binary(c.Key)) + "::bytea, " + v.bind(int64(c.Version)) + "::bigint)"
		}
		cases = append(cases, fmt.Sprintf(`EXISTS (SELECT FROM (VALUES %s) AS wanted (key, version)
			LEFT JOIN keys USING (key)
			WHERE coalesce(keys.version, 0) <> wanted.version) THEN %d`, strings.Join(wanted, ", "), conflict))
	}
	var puts, values, deletes [][]byte
	var owners []*int64
	for _, op := range txn.Then {
		if op.Delete {
			deletes = append(deletes, binary(op.Key))
			continue
		}
		var owner *int64
		if op.Session != nil {
			session, ok := op.Session.(*session)
			if !ok {
				return verdict{}, nil,
					fmt.Errorf("commit: %w: %s is put under a session of another store", store.ErrRefused, op.Key)
			}
			owner = &session.id
			select {
			case <-session.done:
				cases = append(cases, fmt.Sprintf("true THEN %d", ended))
			default:
				cases = append(cases,
					fmt.Sprintf("NOT EXISTS (SELECT FROM sessions WHERE id = %s) THEN %d", v.bind(session.id), ended))
			}
		}
		puts, values, owners = append(puts, binary(op.Key)), append(values, binary(op.Value)), append(owners, owner)
	}
	v.sql = "CASE WHEN " + strings.Join(cases, " WHEN ") + " ELSE 0 END"
	return v, func(m *message) {
		if len(deletes) > 0 {
			m.do("WITH gone AS (DELETE FROM keys USING "+fromLatest+
				" WHERE verdict = 0 AND key = ANY(@keys) RETURNING key) "+
				"SELECT pg_notify(current_schema(), '') FROM gone LIMIT 1", args{"keys": deletes})
		}
		if len(puts) > 0 {
			m.do(`INSERT INTO keys (key, value, version, created, session)
				SELECT put.key, put.value, revision, revision, put.session
				FROM `+fromLatest+`,
					unnest(@keys::bytea[], @values::bytea[], @sessions::bigint[]) AS put (key, value, session)
				WHERE verdict = 0
				ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version,
					session = excluded.session`,
				args{"keys": puts, "values": values, "sessions": owners})
		}
	}, nil
}
