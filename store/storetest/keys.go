package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/firn-id/firn/store"
)

// "An absent key is no error: its Version is zero."
func absentKey(s *suite) {
	kv, err := s.Get(s.ctx, "absent")
	if err != nil || kv.Version != 0 || kv.Key != "absent" || len(kv.Value) != 0 {
		s.Errorf("Get = %+v, %v", kv, err)
	}
}

// "It returns the version that every key put by it now has."
func commitVersion(s *suite) {
	version := s.commit(store.Txn{Then: []store.Op{
		store.Put("a", []byte("1")), store.Delete("z"), store.Put("b", []byte("2")),
	}})
	for _, key := range []string{"a", "b"} {
		if got := s.get(key).Version; got != version {
			s.Errorf("%s has version %d, but Commit returned %d", key, got, version)
		}
	}
}

// "[A version] changes at every write of a key ... later writes have greater ones."
func ascendingVersions(s *suite) {
	last := s.put("key", "same")
	for range 5 {
		s.put("other", "same")
		next := s.put("key", "same")
		if next <= last {
			s.Fatalf("version %d came after %d", next, last)
		}
		last = next
	}
	if got := s.want("key", "same").Version; got != last {
		s.Errorf("the last write gave %d, Get says %d", last, got)
	}
}

// "It never repeats for a key that exists."
func versionAfterDelete(s *suite) {
	before := s.put("key", "1")
	s.delete("key")
	s.refuse(store.ErrConflict, store.Txn{If: when("key", before), Then: putting("key", "2")})
	if after := s.put("key", "1"); after <= before {
		s.Errorf("version %d, and %d after a delete", before, after)
	}
	s.refuse(store.ErrConflict, store.Txn{If: when("key", before), Then: putting("key", "2")})
}

// Values are bytes, and are the store's own once written.
func values(s *suite) {
	for i, value := range [][]byte{nil, {}, {0}, {0, 255, 10, 13}, bytes.Repeat([]byte("firn"), 10_000)} {
		key := fmt.Sprintf("v/%d", i)
		mine := slices.Clone(value)
		s.commit(store.Txn{Then: []store.Op{store.Put(key, mine)}})
		for j := range mine {
			mine[j] ^= 1
		}
		kv := s.get(key)
		if !bytes.Equal(kv.Value, value) || kv.Version == 0 {
			s.Errorf("value %d came back as %d bytes at version %d", i, len(kv.Value), kv.Version)
		}
		for j := range kv.Value {
			kv.Value[j] ^= 1
		}
		if again := s.get(key); !bytes.Equal(again.Value, value) {
			s.Errorf("value %d can be changed by its reader", i)
		}
	}
}

// A key is not its neighbour, whatever letters they share.
func neighbours(s *suite) {
	keys := []string{
		"a", "a/", "a/b", "a//b", "ab", "a b", "a%2Fb", "a%", "a_", "a\\", "A", "ä", "a\u0308", "a\u00a0", "a ",
		" a", "'a'", `"a"`,
		".", "..", "/", "/a", "a/..", "a\U0001F600", "a\uffff", "b", strings.Repeat("ü", store.MaxKey/2),
		strings.Repeat("ü", store.MaxKey/2-1) + "ab",
	}
	for _, key := range keys {
		s.wantAbsent(key)
		s.put(key, "value of "+key)
	}
	for _, key := range keys {
		s.want(key, "value of "+key)
	}
	s.delete("a")
	s.wantAbsent("a")
	for _, key := range keys[1:] {
		s.want(key, "value of "+key)
	}
}

// "List reads every key that begins with prefix ... in ascending order of the keys."
func listOrder(s *suite) {
	for _, key := range []string{
		"n/2", "n/10", "n", "n/", "m/1", "n0", "o", "n/\uffff", "N/1", "n/\U0001F600",
		"n_1", "n/1",
	} {
		s.put(key, key)
	}
	for prefix, want := range map[string][]string{
		"n/":       {"n/", "n/1", "n/10", "n/2", "n/\uffff", "n/\U0001F600"},
		"n/1":      {"n/1", "n/10"},
		"n/\uffff": {"n/\uffff"},
		"n_":       {"n_1"},
		"":         {"N/1", "m/1", "n", "n/", "n/1", "n/10", "n/2", "n/\uffff", "n/\U0001F600", "n0", "n_1", "o"},
		"p":        nil,
	} {
		kvs, err := s.List(s.ctx, prefix)
		s.must("List "+prefix, err)
		var got []string
		for _, kv := range kvs {
			got = append(got, kv.Key)
			if string(kv.Value) != kv.Key || kv.Version == 0 {
				s.Errorf("List(%q) has %+v", prefix, kv)
			}
		}
		if !slices.Equal(got, want) {
			s.Errorf("List(%q) = %q, want %q", prefix, got, want)
		}
	}
}

// "List reads every key ... as they were at one moment."
func listMoment(s *suite) {
	write := func(i int) error {
		value := strconv.Itoa(i)
		_, err := s.Commit(s.ctx, store.Txn{Then: append(putting("pair/a", value), putting("pair/b", value)...)})
		return err
	}
	s.must("Commit", write(0))
	defer s.meanwhile(write)()
	for range 50 {
		kvs, err := s.List(s.ctx, "pair/")
		s.must("List", err)
		if len(kvs) != 2 || !bytes.Equal(kvs[0].Value, kvs[1].Value) || kvs[0].Version != kvs[1].Version {
			s.Fatalf("List saw half a transaction: %+v", kvs)
		}
	}
}

// "ErrConflict means that a condition of a transaction did not hold. Nothing was
// applied."
func conflict(s *suite) {
	version := s.put("key", "1")
	for _, txn := range []store.Txn{
		{If: when("key", version+1), Then: putting("key", "2")},
		{If: when("key", version-1), Then: putting("key", "2")},
		{If: when("other", version), Then: putting("key", "2")},
		{If: append(when("key", version), store.Condition{Key: "other", Version: 1}), Then: putting("key", "2")},
		{If: when("key", 0), Then: []store.Op{store.Delete("key"), store.Put("other", nil)}},
	} {
		s.refuse(store.ErrConflict, txn)
	}
	s.wantVersion("key", "1", version)
	s.wantAbsent("other")
}

// "Condition holds when the key has exactly this version; zero means absent."
func createIfAbsent(s *suite) {
	create := store.Txn{If: when("key", 0), Then: putting("key", "1")}
	version := s.commit(create)
	s.refuse(store.ErrConflict, create)
	s.commit(store.Txn{If: when("key", version), Then: []store.Op{store.Delete("key")}})
	s.commit(create)
}

// "If all conditions hold, then all operations apply at one moment."
func allOrNothing(s *suite) {
	a := s.put("a", "1")
	s.put("b", "1")
	version := s.commit(store.Txn{
		If:   append(when("a", a), store.Condition{Key: "c"}),
		Then: []store.Op{store.Put("a", []byte("2")), store.Delete("b"), store.Put("c", []byte("2"))},
	})
	s.wantVersion("a", "2", version)
	s.wantAbsent("b")
	s.want("c", "2")
}

// "Delete removes a key; an absent key is no error."
func deleteAbsent(s *suite) {
	s.delete("absent")
	s.commit(store.Txn{If: when("absent", 0), Then: []store.Op{store.Delete("absent")}})
	s.wantAbsent("absent")
}

// "An operation's key must not appear in another operation of the same Txn."
func duplicateKey(s *suite) {
	s.refuse(store.ErrRefused, store.Txn{Then: []store.Op{store.Put("key", nil), store.Delete("key")}})
	s.wantAbsent("key")
}

// "A transaction may have up to MaxOps conditions and up to MaxOps operations ... A
// store refuses more."
func largest(s *suite) {
	var txn store.Txn
	for i := range store.MaxOps + 1 {
		key := fmt.Sprintf("many/%d", i)
		txn.If = append(txn.If, store.Condition{Key: key})
		txn.Then = append(txn.Then, store.Put(key, []byte("1")))
	}
	s.refuse(store.ErrRefused, txn)
	s.refuse(store.ErrRefused, store.Txn{If: txn.If})
	s.refuse(store.ErrRefused, store.Txn{Then: txn.Then})
	s.wantAbsent("many/0")
	version := s.commit(store.Txn{If: txn.If[1:], Then: txn.Then[1:]})
	s.wantAbsent("many/0")
	for _, op := range txn.Then[1:] {
		s.wantVersion(op.Key, "1", version)
	}
}

// "Up to MaxBytes bytes of keys and values in its operations", beside as many conditions on
// keys of MaxKey bytes as there may be.
func largestBytes(s *suite) {
	var txn store.Txn
	name := func(i int) string { return fmt.Sprintf("%0*d", store.MaxKey, i) }
	for i := range store.MaxOps {
		txn.If = append(txn.If, store.Condition{Key: name(i)})
	}
	const ops = 4
	for i := range ops {
		txn.Then = append(txn.Then, store.Put(name(i), bytes.Repeat([]byte{byte(i)}, store.MaxBytes/ops-store.MaxKey)))
	}
	version := s.commit(txn)
	for _, op := range txn.Then {
		s.wantVersion(op.Key, string(op.Value), version)
	}
	s.refuse(store.ErrRefused,
		store.Txn{Then: append(txn.Then[1:], store.Put(name(0), txn.Then[1].Value), store.Delete("x"))})
	s.wantVersion(name(0), string(txn.Then[0].Value), version)
}

// "A store refuses another key", in every call.
func invalidKeys(s *suite) {
	for _, key := range []string{"", strings.Repeat("x", store.MaxKey+1), "a\x00", "a\n", "\u0085", "a\xff", "\xc3"} {
		_, err := s.Get(s.ctx, key)
		s.wantRefused("Get", key, err)
		_, err = s.Gone(s.ctx, key)
		s.wantRefused("Gone", key, err)
		if key != "" {
			_, err = s.List(s.ctx, key)
			s.wantRefused("List", key, err)
		}
		_, err = s.Commit(s.ctx, store.Txn{If: when(key, 0), Then: putting("key", "1")})
		s.wantRefused("Commit with a condition", key, err)
		_, err = s.Commit(s.ctx, store.Txn{Then: append(putting("key", "1"), store.Put(key, nil))})
		s.wantRefused("Commit with a put", key, err)
	}
	s.wantAbsent("key")
}

func (s *suite) wantRefused(call, key string, err error) {
	s.Helper()
	if !errors.Is(err, store.ErrRefused) {
		s.Errorf("%s of the key %.20q: %v, want ErrRefused", call, key, err)
	}
}

// A store is linearizable: of any number of transactions under one condition at
// most one applies, and it is the one that was told so.
func contention(s *suite) {
	const clients, rounds = 4, 10
	var won atomic.Int64
	s.atOnce(clients, func(_ int, client store.Store) error {
		for range rounds {
			kv, err := client.Get(s.ctx, "counter")
			if err != nil {
				return err
			}
			n, _ := strconv.Atoi(string(kv.Value))
			_, err = client.Commit(s.ctx, store.Txn{
				If: when("counter", kv.Version), Then: putting("counter", strconv.Itoa(n+1)),
			})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrConflict):
				return err
			}
		}
		return nil
	})
	s.want("counter", strconv.FormatInt(won.Load(), 10))
}

// "Every call ends with its context"; a Commit is then ambiguous, and the cause
// can be told from the error.
func endedContext(s *suite) {
	s.put("key", "1")
	session := s.session(s.Store)
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	unavailable := []error{store.ErrUnavailable}
	for _, c := range append(s.calls(s.Store),
		call{"Append", func(ctx context.Context) error { _, err := s.Append(ctx, "a", nil); return err }, unavailable},
		call{"Close", session.Close, unavailable},
	) {
		s.wantUnanswered(c, c.do(ended), context.Canceled)
	}
	s.wantLog()
}
