package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/stores"
)

// addStore adds the flag of a store that others keep.
func addStore(flags *pflag.FlagSet, into *deploy.Store) {
	setting.Add(flags, into, "store", "store", "", "an existing store, in the form of firn serve --store", parseStore)
}

// parseStore reads the address of a store that others keep.
func parseStore(text string) (deploy.Store, error) {
	a, err := stores.Parse(text)
	if err != nil {
		return deploy.Store{}, err
	}
	var c stores.Choice
	if c.Use(a); c.Keeps() {
		return deploy.Store{}, fmt.Errorf("firn runs the store %.80q itself; want an external store, or --quorum", text)
	}
	if a.Password() {
		return deploy.Store{}, fmt.Errorf("%.200q has a password, which the file would show; want it in a secret", a)
	}
	return deploy.Store{Address: a.String(), Kind: string(a.Kind), Servers: a.Servers()}, nil
}
