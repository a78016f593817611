package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
)

// value is a flag whose text is read by a function, whose error says what would be right. It is the same
// for the command line, the environment and the config file.
type value[T any] struct {
	into  *T
	text  string
	kind  string // what help and the config file call it
	parse func(string) (T, error)
}

func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err != nil {
		return err
	}
	*v.into, v.text = parsed, text
	return nil
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return v.kind }

// add adds a flag to fs, with its default as text. Without a text the default is what into holds. A short
// name may follow the long one: "count,n".
func add[T any](fs *pflag.FlagSet, into *T, name, kind, text, usage string, parse func(string) (T, error)) *pflag.Flag {
	v := &value[T]{into: into, kind: kind, parse: parse}
	if text != "" {
		if err := v.Set(text); err != nil {
			panic(fmt.Sprintf("the default of --%s: %v", name, err))
		}
	}
	long, short, _ := strings.Cut(name, ",")
	return fs.VarPF(v, long, short, usage)
}

func addBool(fs *pflag.FlagSet, into *bool, name, usage string) {
	f := add(fs, into, name, kindBool, "", usage, func(text string) (bool, error) {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return false, fmt.Errorf("%.40q is neither true nor false", text)
		}
		return b, nil
	})
	f.NoOptDefVal = "true"
}

// Kinds of flags that the config file writes other than as a string.
const (
	kindBool   = "bool"
	kindNumber = "number"
	kindShare  = "share"
	kindList   = "list"
)

// addDuration adds a duration of at least the given one.
func addDuration(fs *pflag.FlagSet, into *time.Duration, name, text string, least time.Duration, usage string) {
	add(fs, into, name, "duration", text, usage, func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%.40q is no duration; want one such as 500ms, 10s or 1m30s", text)
		}
		if d < least {
			return 0, fmt.Errorf("%v is too short; want at least %v", d, least)
		}
		return d, nil
	})
}

func addNumber[N int | int64](fs *pflag.FlagSet, into *N, name, text string, least int64, usage string) {
	add(fs, into, name, kindNumber, text, usage, func(text string) (N, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || int64(N(n)) != n {
			return 0, fmt.Errorf("%.40q is not right; want a whole number from %d", text, least)
		}
		return N(n), nil
	})
}

// layoutFlags choose a layout: --layout and --epoch.
type layoutFlags struct {
	layout firn.Layout
	epoch  time.Time // zero: that of the layout
}

func (l *layoutFlags) add(c *cobra.Command, fs *pflag.FlagSet) {
	add(fs, &l.layout, "layout", "layout", "default",
		"how an ID's bits are split: one that firn layout lists,\nor bits such as 41/10/12 or 41/5/5/12@10ms", firn.ParseLayout)
	l.addEpoch(fs)
	must(c.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveNoFileComp)))
}

func (l *layoutFlags) addEpoch(fs *pflag.FlagSet) {
	add(fs, &l.epoch, "epoch", "time", "",
		"the instant that the layout's time counts from, as a date or\nRFC 3339 (default: that of the layout)", parseTime)
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
	return time.Time{}, fmt.Errorf("%.40q is no time; want one such as 2026-01-01 or 2026-01-01T00:00:00Z", text)
}

func parseAddress(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if _, errPort := strconv.ParseUint(port, 10, 16); err != nil || errPort != nil {
		return "", fmt.Errorf("%.80q is no address; want one such as :8080, 127.0.0.1:8080 or [::1]:8080", text)
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

// oneOf returns a function that reads one of the words.
func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		for _, w := range words {
			if text == w {
				return w, nil
			}
		}
		return "", fmt.Errorf("%.40q is not right; want one of %v", text, words)
	}
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
