package main

import (
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/node"
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
	must(c.RegisterFlagCompletionFunc("layout",
		cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveNoFileComp)))
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

// parseListener reads where a node listens: an address, a Unix socket, or a socket that systemd passes.
func parseListener(text string) (string, error) {
	if unixsocket.Is(text) {
		path, err := unixsocket.Parse(text)
		return unixsocket.Scheme + path, err
	}
	if name, ok := strings.CutPrefix(text, node.FromSystemd); ok && name != "" {
		return text, nil
	}
	if _, err := parseAddress(text); err != nil {
		return "", fmt.Errorf("%.120q is not an address; want one such as :8080, 127.0.0.1:8080, [::1]:8080, "+
			"unix:/run/firn/firn.sock or systemd:http", text)
	}
	return text, nil
}

// noAddress is nowhere to listen.
const noAddress = "none"

// parseListenerOrNone returns an empty address for nowhere.
func parseListenerOrNone(text string) (string, error) {
	if text == noAddress {
		return "", nil
	}
	return parseListener(text)
}

// parseMode reads the permissions of a file.
func parseMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o777 || mode&0o600 != 0o600 {
		return 0, fmt.Errorf("%.40q is not a mode of a socket; want octal digits such as 0600, for the node's own "+
			"user, 0660, for its group too, or 0666, for all users", text)
	}
	return fs.FileMode(mode), nil
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

// addForm adds the flag that says in which form IDs are. Before there were forms it was called format.
func addForm[T any](c *cobra.Command, into *T, standard string, forms []string, parse func(string) (T, error)) {
	flags := c.Flags()
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "format" {
			name = "form"
		}
		return pflag.NormalizedName(name)
	})
	setting.Add(flags, into, "form", "form", standard, "the form of the IDs: "+strings.Join(forms, ", "), parse)
	must(c.RegisterFlagCompletionFunc("form", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)))
}
