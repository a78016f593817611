package main

import (
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/doctor"
	"github.com/firn-id/firn/internal/setting"
)

// fromEnvironment sets the flags with these names that the command line did not set, and warns about variables that are
// almost such a flag.
func (p *program) fromEnvironment(flags *pflag.FlagSet, names ...string) error {
	for _, v := range setting.Misspelled(flags, p.env, names...) {
		p.warnf("%s is not used; did you mean %s?", v.Given, v.Meant)
	}
	if err := (setting.Sources{}).FromEnvironment(flags, p.env, names...); err != nil {
		return usageError{err}
	}
	return nil
}

// misspelled warns about variables that are almost one of these flags.
func misspelled(flags *pflag.FlagSet, env map[string]string) (all []doctor.Finding) {
	for _, v := range setting.Misspelled(flags, env) {
		all = append(all, doctor.Finding{Level: doctor.Warn, About: v.Given, Found: "is not used", Do: "did you mean " + v.Meant + "?"})
	}
	return all
}
