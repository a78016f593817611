# Short names for a few commands. Go needs no Makefile; .ci/run decides what lands.

.PHONY: help build dist test
help: ## list the commands
	@sed -n 's/^\([a-z]*\): *## /\1	/p' Makefile

build: ## build ./firn for this machine
	go build -o firn ./cmd/firn

dist: ## what people install, for Linux, macOS and Windows, in dist/
	deploy/build

test: ## run the tests that take minutes; FIRN_TESTS=all make test runs all
	go test ./...
