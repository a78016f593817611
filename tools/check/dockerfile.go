package main

import (
	"fmt"
	"io"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// dockerfile reads a Dockerfile as BuildKit does, with its linter, whose warnings are errors here.
func dockerfile(in io.Reader, out io.Writer) error {
	parsed, err := parser.Parse(in)
	if err != nil {
		return err
	}
	if len(parsed.Warnings) > 0 {
		return fmt.Errorf("a warning: %s", parsed.Warnings[0].Short)
	}
	var warned error
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, at []parser.Range) {
		if warned == nil {
			warned = fmt.Errorf("%v: %s: %s", at, rule, message)
		}
	}})
	stages, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		return err
	}
	for _, stage := range stages {
		fmt.Fprintf(out, "FROM %s\n", stage.BaseName)
		for _, command := range stage.Commands {
			fmt.Fprintf(out, "  %v\n", command)
		}
	}
	return warned
}
