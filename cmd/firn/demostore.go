package main

import (
	"sync"

	"github.com/firn-id/firn/store/memstore"
)

// demoStore is the store of a demo: in memory, and gone with it.
type demoStore struct {
	service *memstore.Service

	mu      sync.Mutex // guards what follows, and in clients what is theirs
	stopped bool
	clients map[*demoClient]bool
}

// demoClient is one node's way to the store. It implements closingStore.
type demoClient struct {
	*memstore.Client
	store *demoStore
	cut   bool // for this node alone
}

func newDemoStore() *demoStore {
	return &demoStore{service: memstore.NewService(), clients: map[*demoClient]bool{}}
}

func (s *demoStore) open(name string) *demoClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &demoClient{Client: s.service.Client(name), store: s}
	s.clients[c] = true
	c.CutOff(s.stopped)
	return c
}

// stop puts the store out of everybody's reach, or back. It tells whether that changed anything.
func (s *demoStore) stop(stopped bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.stopped != stopped
	s.stopped = stopped
	for c := range s.clients {
		c.CutOff(s.stopped || c.cut)
	}
	return changed
}

func (s *demoStore) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// setCut puts the store out of this node's reach, or back.
func (c *demoClient) setCut(cut bool) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.cut = cut
	c.CutOff(c.store.stopped || cut)
}

func (c *demoClient) Close() error {
	c.store.mu.Lock()
	delete(c.store.clients, c)
	c.store.mu.Unlock()
	return c.Client.Close()
}
