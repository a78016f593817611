package demo

import (
	"sync"

	"github.com/firn-id/firn/store/memstore"
)

// sharedStore is the store of a demo: in memory, and gone with it.
type sharedStore struct {
	service *memstore.Service

	mu      sync.Mutex // guards what follows, and in clients what is theirs
	stopped bool
	clients map[*client]bool
}

// client is one node's way to the store. It implements node.Store.
type client struct {
	*memstore.Client
	store *sharedStore
	cut   bool // for this node alone
}

func newSharedStore() *sharedStore {
	return &sharedStore{service: memstore.NewService(), clients: map[*client]bool{}}
}

func (s *sharedStore) open(name string) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &client{Client: s.service.Client(name), store: s}
	s.clients[c] = true
	c.CutOff(s.stopped)
	return c
}

// stop puts the store out of everybody's reach, or back. It tells whether that changed anything.
func (s *sharedStore) stop(stopped bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.stopped != stopped
	s.stopped = stopped
	for c := range s.clients {
		c.CutOff(s.stopped || c.cut)
	}
	return changed
}

func (s *sharedStore) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// setCut puts the store out of this node's reach, or back.
func (c *client) setCut(cut bool) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.cut = cut
	c.CutOff(c.store.stopped || cut)
}

func (c *client) Close() error {
	c.store.mu.Lock()
	delete(c.store.clients, c)
	c.store.mu.Unlock()
	return c.Client.Close()
}
