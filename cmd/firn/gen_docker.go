package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
)

const genDockerHelp = `Docker prints a Dockerfile for an image of firn that is from scratch: one static
binary and the certificates of authorities, for a user without rights. At its top
it says how to build them.`

const genDockerExamples = `  firn gen docker | docker build -t firn -f - .`

func (p *program) genDocker() *cobra.Command {
	return p.genKind("docker", "Print a Dockerfile", genDockerHelp, genDockerExamples, func(*cobra.Command) {}, deploy.Docker{}.Text)
}
