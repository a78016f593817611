// Package firnv1 is firn's API over gRPC, version 1: its messages, the clients to call it with, and what a server of it
// has to offer. The files beside this one are made from ../firn/v1, which describes everything.
package firnv1

//go:generate ../generate
