// Check reads a file that firn gen or deploy/build has written from standard input, as strictly as the
// program that it is for, and prints what it is made of.
//
//	check kubernetes < firn.k8s.yaml
//	check dockerfile < Dockerfile
//	check compose < compose.yaml
//	check bill < firn.cdx.json
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	kinds := map[string]func(io.Reader, io.Writer) error{
		"kubernetes": kubernetes, "dockerfile": dockerfile,
		"compose": compose, "bill": bill,
	}
	if len(args) != 1 || kinds[args[0]] == nil {
		return errors.New("want one of kubernetes, dockerfile, compose, bill")
	}
	return kinds[args[0]](in, out)
}
