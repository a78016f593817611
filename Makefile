# The few commands that are worth a name. Go needs no Makefile; .ci/run decides what lands.

.PHONY: help build dist test
help: ## say what there is
	@sed -n 's/^\([a-z]*\): *## /\1	/p' Makefile

build: ## build ./firn for this machine
	go build -o firn ./cmd/firn

dist: ## binaries, deb, rpm, tar.gz, SBOM and licences for amd64 and arm64, in dist/
	deploy/packages/build

test: ## run all tests
	go test ./...
