package memstore_test

import (
	"math/rand/v2"
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
		Disturb:  disturb,
		Backup: func(*testing.T) func(*testing.T) {
			backup := svc.Backup()
			return func(*testing.T) { svc.RollBack(backup, 0) }
		},
		Expire: func(_ *testing.T, session store.Session) { svc.Expire(session) },
	}
}

// disturb injects faults of every kind.
func disturb(client store.Store, disturbed bool) {
	if !disturbed {
		client.(*memstore.Client).Inject(nil)
		return
	}
	client.(*memstore.Client).Inject(func(memstore.Call) (f memstore.Fault) {
		f.Delay = time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
		switch rand.IntN(10) {
		case 0:
			f.Outcome = memstore.FailBefore
		case 1:
			f.Outcome = memstore.FailAfter
		case 2:
			f.Outcome, f.Delay = memstore.ApplyLate, 10*f.Delay
		}
		return f
	})
}

func TestContract(t *testing.T) { storetest.RunInBubble(t, harness) }
