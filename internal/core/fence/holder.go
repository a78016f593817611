package fence

import (
	"strings"
	"sync"

	"github.com/firn-id/firn/internal/base/fresh"
)

// Holder makes the operation IDs of the fences that are claimed under one session, each of which begins with its name.
// So it knows those of its copies: after a copy of the process was made, both claim under the same session and name,
// and one would wait for a node ID that the other holds, for as long as it renews the session itself. It is safe for
// concurrent use. Nil makes operation IDs without a name, and knows no copies.
type Holder struct {
	name string

	mu   sync.Mutex
	made map[string]bool // those that may be in the store
}

// NewHolder returns a holder with a name, which only its copies share.
func NewHolder(name string) *Holder { return &Holder{name: name, made: map[string]bool{}} }

// operation returns a new operation ID.
func (h *Holder) operation() string {
	if h == nil {
		return fresh.Text()
	}
	id := h.name + "-" + fresh.Text()
	h.remember(id)
	return id
}

func (h *Holder) remember(operation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made[operation] = true
}

// forget says that an operation ID is not in the store, and will not be.
func (h *Holder) forget(operation string) {
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.made, operation)
	}
}

// isCopys reports whether a copy made the operation ID.
func (h *Holder) isCopys(operation string) bool {
	if h == nil || !strings.HasPrefix(operation, h.name+"-") {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.made[operation]
}
