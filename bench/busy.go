package main

import (
	"context"
	"os/exec"
)

// beside runs a function beside so many processes that do nothing but use CPU.
func beside(ctx context.Context, loops int, f func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var running []*exec.Cmd
	defer func() {
		stop() // kills them
		for _, loop := range running {
			_ = loop.Wait()
		}
	}()
	for range loops {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			return err
		}
		running = append(running, loop)
	}
	return f()
}
