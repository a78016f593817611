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
	found, err := s.read(ctx, "get "+key,
		maybe("SELECT key, value, version FROM keys WHERE key = "+bytesOf(key), "xxp"))
	if err != nil {
		return store.KV{}, err
	}
	if len(found[1]) == 0 {
		return store.KV{Key: key}, nil
	}
	got := kv(found[1], 0)
	if got.Key != key {
		return store.KV{}, callError("get "+key, fmt.Errorf("the server answers the key %.80q; want %q", got.Key, key))
	}
	return got, nil
}

// List reads every key with a prefix, see store.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]store.KV, error) {
	if err := store.ValidatePrefix(prefix); err != nil {
		return nil, err
	}
	where := "key > '' AND key >= " + bytesOf(prefix)
	if end := after(prefix); end != "" {
		where += " AND key < " + bytesOf(end)
	}
	found, err := s.read(ctx, "list "+prefix,
		several("SELECT key, value, version FROM keys WHERE "+where+" ORDER BY key", "xxp"))
	if err != nil {
		return nil, err
	}
	kvs := make([]store.KV, len(found[1]))
	for i := range kvs {
		kvs[i] = kv(found[1], i)
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

func kv(r rows, row int) store.KV {
	return store.KV{Key: string(r.bytes(row, 0)), Value: r.bytes(row, 1), Version: store.Version(r.int(row, 2))}
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
	w, err := s.write(ctx, call, verdict, then...)
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
func translate(txn store.Txn) (verdict string, then []statement, err error) {
	cases := []string{"false THEN 0"}
	if len(txn.If) > 0 {
		cases = append(cases, fmt.Sprintf(`EXISTS (SELECT FROM (VALUES %s) AS wanted (key, version)
			LEFT JOIN keys USING (key)
			WHERE coalesce(keys.version, 0) <> wanted.version) THEN %d`,
			list(func(c store.Condition) string {
				return "(" + bytesOf(c.Key) + ", " + number(c.Version) + ")"
			}, txn.If...), conflict))
	}
	var puts, deletes []string
	for _, op := range txn.Then {
		if op.Delete {
			deletes = append(deletes, bytesOf(op.Key))
			continue
		}
		owner := "NULL::bigint"
		if op.Session != nil {
			session, ok := op.Session.(*session)
			if !ok {
				return "", nil,
					fmt.Errorf("commit: %w: %s is put under a session of another store", store.ErrRefused, op.Key)
			}
			owner = number(session.id)
			select {
			case <-session.done:
				cases = append(cases, fmt.Sprintf("true THEN %d", ended))
			default:
				cases = append(cases,
					fmt.Sprintf("NOT EXISTS (SELECT FROM sessions WHERE id = %s) THEN %d", owner, ended))
			}
		}
		puts = append(puts, "("+bytesOf(op.Key)+", "+bytesOf(op.Value)+", "+owner+")")
	}
	if len(deletes) > 0 {
		then = append(then, do("WITH gone AS (DELETE FROM keys USING "+fromLatest+" WHERE verdict = 0 AND key IN ("+
			strings.Join(deletes, ", ")+
			") RETURNING key) SELECT pg_notify(current_schema(), '') FROM gone LIMIT 1"))
	}
	if len(puts) > 0 {
		then = append(then, do(`INSERT INTO keys (key, value, version, created, session)
			SELECT put.key, put.value, revision, revision, put.session
				FROM `+fromLatest+`, (VALUES `+strings.Join(puts, ", ")+`) AS put (key, value, session)
			WHERE verdict = 0
			ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version,
				session = excluded.session`))
	}
	return "CASE WHEN " + strings.Join(cases, " WHEN ") + " ELSE 0 END", then, nil
}
