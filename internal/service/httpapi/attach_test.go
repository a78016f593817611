package httpapi_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
)

const explicit = `{"name":"orders","nodes":1,"attach":"explicit",` + before + `}`

// showing has the server want tokens, and returns it as it is for who shows the one of a name. The tokens are issue,
// attach, which allows both, and admin.
func (s *served) showing(name string) *served {
	s.t.Helper()
	return s.by(bearing{withMetrics(s.Service, &auth.Policy{Tokens: tokensOf(s.t, map[string]string{
		"issue": "allow: [issue]", "attach": "allow: [issue, attach]", "admin": "allow: [admin]",
	})}), name})
}

// tokensOf are tokens that are their names, with what else their entries say.
func tokensOf(t *testing.T, entries map[string]string) *auth.Tokens {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	var all strings.Builder
	for name, rest := range entries {
		fmt.Fprintf(&all, "- {name: %s, sha256: %s, %s}\n", name, auth.Hash(name), rest)
	}
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// by is the server, asked by way of another handler.
func (s *served) by(h http.Handler) *served { return &served{t: s.t, through: h} }

// With tokens, a call for an ID takes a node ID only for who may attach; whoever may not gets IDs where a node is
// attached.
func TestAttachingIsARight(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		issue, attach, admin := all[0].showing("issue"), all[0].showing("attach"), all[0].showing("admin")
		admin.ask("POST /api/v1/sequencers", orders, 201, "")
		issue.ask("POST /api/v1/id", "", 200, "id") // of the default sequencer, to which a node attaches at its start
		detached := code("detached",
			`the token \\"issue\\" allows issue, not attach or admin; POST /api/v1/sequencers/orders/attach`)
		for _, call := range []string{"id", "ids?count=3"} {
			issue.ask("POST /api/v1/sequencers/orders/"+call, "", 503, detached)
		}
		issue.ask("POST /api/v1/sequencers/orders/attach", "", 403, code("forbidden", "not attach or admin"))
		issue.ask("POST /api/v1/sequencers/none/id", "", 404, code("unknown_sequencer", "none"))
		issue.ask("GET /api/v1/sequencers/orders", "", 200, `"nodes":\{\},.*"here":\{"state":"none"\}`)

		attach.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
		issue.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
		attach.ask("POST /api/v1/sequencers/orders/detach", "", 403, code("forbidden", "not admin"))
		admin.ask("POST /api/v1/sequencers/orders/detach", "", 200, "detached")
		issue.ask("POST /api/v1/sequencers/orders/id", "", 503, detached)
		for _, who := range []*served{attach, admin} {
			who.ask("POST /api/v1/sequencers/orders/attach", "", 200, "attached")
			issue.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
			admin.ask("POST /api/v1/sequencers/orders/detach", "", 200, "detached")
		}
	})
}

// A sequencer that is attached to explicitly has no node ID taken by a call for an ID, whoever calls.
func TestExplicitAttach(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		anyone := b.by(withMetrics(b.Service, new(auth.Policy)))
		a.ask("POST /api/v1/sequencers", explicit, 201, `"attach":"explicit"`)
		a.ask("POST /api/v1/sequencers", oneNode, 409,
			`"differences":\[\{"field":"attach","in_force":"explicit","wanted":"on-demand"\}\]`)
		detached := code("detached",
			"the sequencer was created to be attached to explicitly; POST /api/v1/sequencers/orders/attach")
		for _, who := range []*served{a, b, anyone, b.showing("attach"), b.showing("issue")} {
			who.ask("POST /api/v1/sequencers/orders/id", "", 503, code("detached", ""))
			who.ask("POST /api/v1/sequencers/orders/ids?count=2", "", 503, code("detached", ""))
		}
		anyone.ask("POST /api/v1/sequencers/orders/id", "", 503, detached)
		anyone.ask("POST /api/v1/sequencers/orders/attach", "", 403, code("forbidden", ""))
		a.ask("GET /api/v1/sequencers/orders", "", 200, `"nodes":\{\},"waiting":\[\],`)

		a.ask("POST /api/v1/sequencers/orders/attach", "", 200, "attached")
		a.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
		anyone.ask("POST /api/v1/sequencers/orders/id", "", 503, detached)
		b.ask("GET /api/v1/sequencers/orders", "", 200, `"nodes":\{"0":"`+a.member.ID()+`"\},"waiting":\[\],`)
		a.ask("POST /api/v1/sequencers/orders/detach", "", 200, "detached")
		a.ask("POST /api/v1/sequencers/orders/id", "", 503, detached)
		b.showing("attach").ask("POST /api/v1/sequencers/orders/attach", "", 200, "attached")
		anyone.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
	})
}

// The definition that counts is the one in the log: who has seen only the one before attaches to neither.
func TestExplicitAttachIsNotMissed(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		for range 20 {
			a.ask("POST /api/v1/sequencers", oneNode, 201, "")
			a.ask("DELETE /api/v1/sequencers/orders", "", 200, "")
			a.ask("POST /api/v1/sequencers", explicit, 201, "")
			b.ask("POST /api/v1/sequencers/orders/id", "", 503, code("detached", ""))
			synctest.Wait()
			a.ask("GET /api/v1/sequencers/orders", "", 200, `"nodes":\{\},"waiting":\[\],`)
			a.ask("DELETE /api/v1/sequencers/orders", "", 200, "")
		}
	})
}

// The only node ID stays with the node that has it, however often others are asked and for how long; and when another
// was first, a detach there gives it to who waits, at once.
func TestTheOnlyNodeID(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		a.ask("POST /api/v1/sequencers", oneNode, 201, "")
		first, second := a, b
		for range 3 {
			first.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
			for range 120 { // longer than any lease or window
				second.ask("POST /api/v1/sequencers/orders/id", "", 503, code("waiting", "place 1 in line"))
				first.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
				time.Sleep(time.Second)
			}
			q, ok := second.member.Sequencer("orders")
			if !ok {
				t.Fatal("who waits has no handle")
			}
			first.ask("POST /api/v1/sequencers/orders/detach", "", 200, "detached")
			began := time.Now()
			for state := range q.Changes(t.Context()) {
				if state.Phase == peer.Attached {
					break
				}
			}
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("the next one had to wait for %v", took)
			}
			second.ask("POST /api/v1/sequencers/orders/id", "", 200, "id")
			first, second = second, first
		}
	})
}

// There are as many sequencers as a node lets there be, however many ask at once; destroying one makes room.
func TestQuota(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		for _, s := range all {
			q, _ := s.member.Sequencer(peer.DefaultSequencer)
			s.handler = handlerWith(t, q, s.member, calls.Options{MaxSequencers: 5})
		}
		a, b := all[0], all[1]
		create := func(name string) string { return `{"name":"` + name + `",` + before + `}` }
		results := make(chan int)
		for i := range 20 {
			go func() {
				w := httptest.NewRecorder()
				a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/api/v1/sequencers",
					strings.NewReader(create(fmt.Sprint("s", i)))))
				results <- w.Code
			}()
		}
		count := map[int]int{}
		for range 20 {
			count[<-results]++
		}
		if count[201] != 4 || count[429] != 16 { // with the default one it is five
			t.Errorf("the statuses were %v, want 4 times 201 and 16 times 429", count)
		}
		synctest.Wait() // so many were refused that the log is read no more for the others
		quota := code("quota",
			"there are 5 sequencers, and the quota is 5; destroy one that nobody needs, or raise --max-sequencers")
		for _, s := range all {
			w := s.ask("POST /api/v1/sequencers", create("more"), 429, quota)
			if again := w.Header().Get("Retry-After"); again != "" {
				t.Errorf("it is said to try again in %s s", again)
			}
		}
		var there string
		for name := range a.member.Value().Sequencers() {
			there = name
		}
		b.ask("POST /api/v1/sequencers", create(there), 200, "") // it is there
		b.ask("DELETE /api/v1/sequencers/"+there, "", 200, "")
		synctest.Wait()
		a.ask("POST /api/v1/sequencers", create("more"), 201, "")
		synctest.Wait()
		b.ask("POST /api/v1/sequencers", create("another"), 429, quota)
	})
}
