package store_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/store"
)

func TestValidate(t *testing.T) {
	many := make([]store.Op, store.MaxOps+1)
	conditions := make([]store.Condition, store.MaxOps+1)
	for i := range many {
		many[i] = store.Delete(string(rune('a' + i)))
	}
	for i := range conditions {
		conditions[i].Key = "k"
	}
	tests := []struct {
		name    string
		txn     store.Txn
		refused bool
	}{
		{"nothing", store.Txn{}, false},
		{"one of each", store.Txn{Then: []store.Op{store.Put("a", nil), store.Delete("b")}}, false},
		{"two conditions on one key", store.Txn{If: []store.Condition{{Key: "a"}, {Key: "a", Version: 1}}}, false},
		{"as many of each as allowed", store.Txn{If: conditions[1:], Then: many[1:]}, false},
		{"as many bytes as allowed", store.Txn{Then: []store.Op{store.Put("k", make([]byte, store.MaxBytes-1))}}, false},
		{"a byte too many", store.Txn{Then: []store.Op{store.Put("kk", make([]byte, store.MaxBytes-1))}}, true},
		{"an operation too many", store.Txn{Then: many}, true},
		{"a condition too many", store.Txn{If: conditions}, true},
		{"put and delete of one key", store.Txn{Then: []store.Op{store.Put("a", nil), store.Delete("a")}}, true},
		{"operation on an empty key", store.Txn{Then: []store.Op{store.Put("", nil)}}, true},
		{"condition on an empty key", store.Txn{If: []store.Condition{{}}}, true},
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
