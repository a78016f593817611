// Firn gives out unique, time-ordered 64-bit IDs, and reads them. `firn help` says how.
package main

import (
	"context"
	"os"
)

func main() {
	ctx := untilSignal(context.Background())
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
