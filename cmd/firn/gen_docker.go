package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
)

const genDockerHelp = `Docker prints a Dockerfile for an image with one static binary, CA certificates
and a user without rights. Its head says how to build the image.`

const genDockerExamples = `  firn gen docker | docker build -t firn -f - .`

func (p *program) genDocker() *cobra.Command {
	return p.genKind("docker", "Print a Dockerfile", genDockerHelp, genDockerExamples, func(*cobra.Command) {},
		deploy.Docker{}.Text)
}
