// Package wire speaks the protocol of ZooKeeper's clients over one connection: no more of it than a store needs,
// and nothing hidden. A caller knows whether a request was sent, at which transaction of the service it was
// answered, and when the connection ended. The package makes no second try of anything, and does not connect
// again.
package wire
