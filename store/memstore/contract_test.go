package memstore_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

func harness(*testing.T) storetest.Harness {
	svc := memstore.NewService()
	return storetest.Harness{
		Open:     func(*testing.T) store.Store { return svc.Client("c") },
		TTL:      time.Second,
		Patience: 10 * time.Second,
		CutOff:   func(client store.Store, cut bool) { client.(*memstore.Client).CutOff(cut) },
		Backup: func(*testing.T) func(*testing.T) {
			backup := svc.Backup()
			return func(*testing.T) { svc.RollBack(backup, 0) }
		},
		Expire: func(_ *testing.T, session store.Session) { svc.Expire(session) },
	}
}

func TestContract(t *testing.T) { storetest.RunInBubble(t, harness) }
