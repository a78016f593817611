package quorum

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/store/quorum/internal/plan"
	"github.com/firn-id/firn/store/quorum/internal/port"
)

// The machines tell each other what they are, and little else:
//
//	GET  /machine     what the machine is, see report
//	GET  /backup      the database of its server, and its SHA-256
//	POST /offer       will it promise to be part of a cluster? Body: plan.Offer; 200: it has; 409: it will not
//	POST /form        it may begin the cluster that it has promised. Body: plan.Disk; 200: it does; 409: it does not
//	POST /log         the entries of its log that are committed, up to an index: see Quorum.meet
//	POST /defragment  it rewrites its database, if its server runs
//
// A client may ask for the first only.
const maxBody = 1 << 20

// report is what a machine says of itself.
type report struct {
	plan.Machine
	Status Machine   // Clock, RoundTrip, Behind and Err are those of the process that asks
	Now    time.Time // by its clock
}

// exchanges serves the others.
func (q *Quorum) exchanges() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /machine", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, q.report()) })
	mux.HandleFunc("GET /backup", forMachines(q.serveBackup))
	mux.HandleFunc("POST /log", forMachines(q.serveLog))
	mux.HandleFunc("POST /offer", forMachines(obey(func(o plan.Offer) (bool, error) {
		return q.accept(o)
	})))
	mux.HandleFunc("POST /form", forMachines(obey(func(d plan.Disk) (bool, error) { return q.form(d.Cluster) })))
	mux.HandleFunc("POST /defragment", forMachines(obey(func(struct{}) (bool, error) { return q.defragment() })))
	return mux
}

// obey reads what a request is about, and answers whether do did it.
func obey[T any](do func(T) (bool, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var about T
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = json.Unmarshal(text, &about)
		}
		if err != nil {
			reply(w, http.StatusBadRequest, err.Error())
			return
		}
		switch done, err := do(about); {
		case err != nil:
			reply(w, http.StatusInternalServerError, err.Error())
		case !done:
			reply(w, http.StatusConflict, "it does not")
		default:
			reply(w, http.StatusOK, "")
		}
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the asker asks again
}

// asker asks other machines. It keeps a connection to each.
type asker struct{ http.Client }

func newAsker(dial func(ctx context.Context, address, protocol string) (*tls.Conn, error)) *asker {
	return &asker{http.Client{Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return dial(ctx, address, port.Exchange)
		},
		MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
	}}}
}

// errRefused is returned when a machine answers that it does not do what it was asked.
var errRefused = errors.New("it refused")

// call asks one machine, and reads its answer into answer unless that is nil.
func (a *asker) call(ctx context.Context, address, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+address+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := a.Do(r)
	if err != nil {
		return shorten(err)
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusConflict:
		return errRefused
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("it answered %s: %s", response.Status, strings.TrimSpace(string(text)))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}

var errNoAnswer = errors.New("no answer")

// shorten takes away what every error of a call says.
func shorten(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		if system, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return system.Err
		}
		return op.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errNoAnswer
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		if strings.HasPrefix(err.Error(), "Get ") || strings.HasPrefix(err.Error(), "Post ") {
			return inner
		}
	}
	return err
}

// answer is what came of asking one machine.
type answer struct {
	report
	err  error
	at   time.Time // when it came
	took time.Duration

	silent time.Time // since when the machine does not answer; zero: it does
	told   bool      // of that
}

// askWithin is how long a machine may take to answer.
const askWithin = time.Second

// askAll asks machines what they are, all at once, and returns an answer for each.
func (q *Quorum) askAll(ctx context.Context, machines []string) map[string]answer {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	answers := map[string]answer{}
	for _, address := range machines {
		all.Go(func() {
			var a answer
			began := time.Now()
			if address == q.selfAddress() {
				a.report = q.report()
			} else {
				a.err = q.asker.call(ctx, address, http.MethodGet, "/machine", nil, &a.report)
			}
			// it does not admit this process
			if op, ok := errors.AsType[*net.OpError](a.err); ok && op.Op == "remote error" {
				a.err = q.ring.Explain(a.err, address)
			}
			if by := a.Address; a.err == nil && by != address { // what one machine says does not count for two
				a = answer{err: fmt.Errorf("it is answered by %s; want each machine under one address, the same "+
					"everywhere", by)}
			}
			a.at, a.took = time.Now(), time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			answers[address] = a
		})
	}
	all.Wait()
	return answers
}

// askTwin asks what answers at the address of this machine: this process, if others reach it there and so can it;
// nothing, if not; or another process, which has a copy of this directory or is about to end.
func (q *Quorum) askTwin(ctx context.Context) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	a.err = q.asker.call(ctx, q.selfAddress(), http.MethodGet, "/machine", nil, &a.report)
	if a.err == nil && a.Address != q.selfAddress() {
		a.err = fmt.Errorf("it is answered by %s", a.Address)
	}
	return a
}

// said returns what those machines said that answered.
func said(answers map[string]answer) map[string]plan.Machine {
	all := map[string]plan.Machine{}
	for address, a := range answers {
		if a.err == nil {
			all[address] = a.Machine
		}
	}
	return all
}

// accepted is a listener of connections that the port has accepted for http.
type accepted struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func newAccepted() *accepted {
	return &accepted{conns: make(chan net.Conn), ended: make(chan struct{})}
}

// take hands over a connection, of a machine or a client, and returns when it is closed.
func (a *accepted) take(c *tls.Conn, machine bool) {
	taken := &plain{Conn: c, machine: machine, closed: make(chan struct{})}
	select {
	case a.conns <- taken:
		<-taken.closed
	case <-a.ended:
	}
}

func (a *accepted) Accept() (net.Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.ended:
		return nil, net.ErrClosed
	}
}

func (a *accepted) Close() error {
	a.once.Do(func() { close(a.ended) })
	return nil
}

func (a *accepted) Addr() net.Addr { return new(net.TCPAddr) }

// plain hides from net/http that a connection is one of TLS: it would refuse the name of our protocol.
type plain struct {
	net.Conn
	machine bool // it is one of a machine
	once    sync.Once
	closed  chan struct{}
}

func (p *plain) Close() error {
	defer p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}
