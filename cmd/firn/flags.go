package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"

	"github.com/firn-id/firn/internal/setting"
)

// layoutFlags choose a layout: --layout and --epoch.
type layoutFlags struct {
	layout firn.Layout
	epoch  time.Time // zero: that of the layout
}

func (l *layoutFlags) add(c *cobra.Command, fs *pflag.FlagSet) {
	setting.Add(fs, &l.layout, "layout", "layout", "default",
		"the layout of IDs: one that firn layout lists, or bits\nsuch as 41/10/12 or 41/5/5/12@10ms", firn.ParseLayout)
	l.addEpoch(fs)
	must(c.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveNoFileComp)))
}

func (l *layoutFlags) addEpoch(fs *pflag.FlagSet) {
	setting.Add(fs, &l.epoch, "epoch", "time", "",
		"when the layout's time begins, as a date or RFC 3339\n(default: that of the layout)", parseTime)
}

// chosen returns the layout with its epoch.
func (l *layoutFlags) chosen() (firn.Layout, error) {
	layout := l.layout
	if !l.epoch.IsZero() {
		layout.Epoch = l.epoch
	}
	if err := layout.Validate(); err != nil {
		return layout, usageError{err}
	}
	return layout, nil
}

func parseTime(text string) (time.Time, error) {
	for _, format := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(format, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is not a time; want one such as 2026-01-01 or 2026-01-01T00:00:00Z", text)
}

func parseAddress(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if _, errPort := strconv.ParseUint(port, 10, 16); err != nil || errPort != nil {
		return "", fmt.Errorf("%.80q is not an address; want one such as :8080, 127.0.0.1:8080 or [::1]:8080", text)
	}
	return text, nil
}

// noAddress is nowhere to listen.
const noAddress = "none"

// parseAddressOrNone returns an empty address for nowhere.
func parseAddressOrNone(text string) (string, error) {
	if text == noAddress {
		return "", nil
	}
	return parseAddress(text)
}

// must stops the program: a mistake in it was found.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func presetNames() []string {
	var names []string
	for _, p := range firn.Presets() {
		names = append(names, p.Name)
	}
	return names
}
