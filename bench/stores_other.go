//go:build !linux

package main

import "context"

// runStores needs Linux, where the tests start the servers.
func runStores(context.Context, settings) ([]table, error) {
	return []table{{Title: "stores", Note: "Skipped: the servers are started on Linux only."}}, nil
}

// runCounter needs it, too.
func runCounter(context.Context, settings) ([]table, error) {
	return []table{{Title: "counter", Note: "Skipped: the servers are started on Linux only."}}, nil
}

// runStrict needs it, too.
func runStrict(context.Context, settings, *contest) ([]table, error) {
	return []table{{Title: "strict", Note: "Skipped: the servers are started on Linux only."}}, nil
}
