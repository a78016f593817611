package quorum

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"

	"github.com/firn-id/firn/store/internal/etcdserver"
)

// Inspection is what a process finds out about a quorum without taking part in it.
type Inspection struct {
	Self    string // address of this machine; empty: it is a client, or SelfErr says why that can't be told
	SelfErr error
	Listen  string // host:port to listen on for the others; empty: it is a client
	Data    Data
	DataErr error // why Data can't be read

	Status Status // of all the machines, Self among them: another process may run there

	// Strangers are the addresses where something answers that is no machine of this quorum, or has another key, as Err
	// in Status says. Nothing answers at others that can't be reached.
	Strangers []string
}

// Data is what the data directory of a machine says. The zero value is that of an empty one.
type Data struct {
	Cluster string // identity of the cluster that it belongs to; empty: none
	State   string // empty, promised, formed, started, lost, removed or alone; package plan explains them
}

// Inspect asks every machine, for up to a second, and reads the data directory. Call it instead of Start.
func (q *Quorum) Inspect(ctx context.Context) (i Inspection) {
	i.Self, i.SelfErr = q.whoAmI()
	i.Status = q.Status(ctx)
	q.mu.Lock()
	for address, a := range q.said {
		if a.err != nil && !silent(a.err) {
			i.Strangers = append(i.Strangers, address)
		}
	}
	q.mu.Unlock()
	slices.Sort(i.Strangers)
	if i.Self == "" {
		return i
	}
	i.Listen = q.listenAddr(i.Self)
	w, err := readWritten(q.config.Dir)
	w.weigh((&etcdserver.Dir{Path: q.config.Dir}).HasLog())
	i.Data, i.DataErr = Data{w.Cluster, w.State.String()}, err
	return i
}

// silent tells whether an error is that of asking where nothing answers.
func silent(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	_, name := errors.AsType[*net.DNSError](err)
	return errors.Is(err, errNoAnswer) || system || name
}
