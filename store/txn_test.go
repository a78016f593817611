package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

func TestValidate(t *testing.T) {
	many := make([]store.Op, store.MaxOps+1)
	conditions := make([]store.Condition, store.MaxOps+1)
	for i := range many {
		many[i] = store.Delete(fmt.Sprint(i))
	}
	for i := range conditions {
		conditions[i].Key = "k"
	}
	one, two := &session{}, &session{}
	tests := []struct {
		name    string
		txn     store.Txn
		refused bool
	}{
		{"nothing", store.Txn{}, false},
		{"one of each", store.Txn{Then: []store.Op{store.Put("a", nil), store.Delete("b")}}, false},
		{"two conditions on one key", store.Txn{If: []store.Condition{{Key: "a"}, {Key: "a", Version: 1}}}, false},
		{"as many of each as allowed", store.Txn{If: conditions[1:], Then: many[1:]}, false},
		{
			"as many bytes as allowed",
			store.Txn{Then: []store.Op{store.Put("k", make([]byte, store.MaxBytes-1))}},
			false,
		},
		{"a byte too many", store.Txn{Then: []store.Op{store.Put("kk", make([]byte, store.MaxBytes-1))}}, true},
		{"an operation too many", store.Txn{Then: many}, true},
		{"a condition too many", store.Txn{If: conditions}, true},
		{"put and delete of one key", store.Txn{Then: []store.Op{store.Put("a", nil), store.Delete("a")}}, true},
		{"operation on an empty key", store.Txn{Then: []store.Op{store.Put("", nil)}}, true},
		{"condition on an empty key", store.Txn{If: []store.Condition{{}}}, true},
		{
			"two keys under one session",
			store.Txn{Then: []store.Op{store.PutEphemeral("a", nil, one), store.PutEphemeral("b", nil, one)}},
			false,
		},
		{"one session and none", store.Txn{Then: []store.Op{
			store.PutEphemeral("a", nil, one), store.Put("b", nil),
			{Key: "c", Session: two, Delete: true},
		}}, false},
		{"two sessions", store.Txn{Then: []store.Op{
			store.PutEphemeral("a", nil, one), store.Put("b", nil),
			store.PutEphemeral("c", nil, two),
		}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.txn.Validate()
			if tt.refused != errors.Is(err, store.ErrRefused) || !tt.refused && err != nil {
				t.Errorf("Validate() = %v, want refused: %v", err, tt.refused)
			}
		})
	}
}

// session is one of no store.
type session struct {
	store.Session
	_ int // so that two have two addresses
}

func TestValidateKey(t *testing.T) {
	long := strings.Repeat("x", store.MaxKey-2)
	tests := []struct {
		key             string
		refused, prefix bool // the latter: refused as a prefix, too
	}{
		{"", true, false},
		{"a", false, false},
		{"a b/ä.%\\\"'\u2028\U0001F600", false, false},
		{long + "ä", false, false},
		{long + "xä", true, true},
		{"a\xff", true, true},
		{"\xc3", true, true}, // the first byte of ä
		{"\x00", true, true},
		{"a\n", true, true},
		{"a\x7f", true, true},
		{"a\u009f", true, true},
		{"a\u00a0", false, false},
	}
	for _, tt := range tests {
		err := store.ValidateKey(tt.key)
		if tt.refused != errors.Is(err, store.ErrRefused) || !tt.refused && err != nil {
			t.Errorf("ValidateKey(%q) = %v, want refused: %v", tt.key, err, tt.refused)
		}
		err = store.ValidatePrefix(tt.key)
		if tt.prefix != errors.Is(err, store.ErrRefused) || !tt.prefix && err != nil {
			t.Errorf("ValidatePrefix(%q) = %v, want refused: %v", tt.key, err, tt.prefix)
		}
		txn := store.Txn{If: []store.Condition{{Key: tt.key}}}
		if err := txn.Validate(); (err != nil) != tt.refused {
			t.Errorf("Validate with a condition on %q = %v, want refused: %v", tt.key, err, tt.refused)
		}
		txn = store.Txn{Then: []store.Op{store.Put(tt.key, nil)}}
		if err := txn.Validate(); (err != nil) != tt.refused {
			t.Errorf("Validate with an operation on %q = %v, want refused: %v", tt.key, err, tt.refused)
		}
	}
}
