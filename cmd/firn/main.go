// Firn gives out unique, time-ordered 64-bit IDs, and reads them. `firn help` says how.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // for dates of counters, where the machine has no zones
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
