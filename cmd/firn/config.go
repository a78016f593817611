package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/firn-id/firn/internal/doctor"
)

// prefix begins the name of each variable.
const prefix = "FIRN_"

// variable is the environment variable of a flag: FIRN_HTTP_ADDR for --http-addr.
func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// sources tells where flags got their values from, for errors: "--node", "FIRN_NODE" or
// "firn.yaml: node".
type sources map[string]string

func (s sources) of(flag string) string {
	if from := s[flag]; from != "" {
		return from
	}
	return "--" + flag
}

// fromEnvironment sets the flags that the command line did not. An empty variable counts as not
// set; those that are no flags of ours are somebody else's, Kubernetes' for one.
func (s sources) fromEnvironment(flags *pflag.FlagSet, env map[string]string, only ...string) error {
	wanted := make(map[string]bool)
	for _, name := range only {
		wanted[name] = true
	}
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		text := env[variable(f.Name)]
		if f.Changed || text == "" || f.Name == "help" || first != nil || len(only) > 0 && !wanted[f.Name] {
			return
		}
		s[f.Name] = variable(f.Name)
		first = s.set(flags, f, text)
	})
	return first
}

// fromEnvironment sets the flags with these names that the command line did not set, and warns about variables that are
// almost such a flag.
func (p *program) fromEnvironment(flags *pflag.FlagSet, names ...string) error {
	for _, w := range misspelled(flags, p.env, names...) {
		p.warnf("%s %s; %s", w.About, w.Found, w.Do)
	}
	return (sources{}).fromEnvironment(flags, p.env, names...)
}

// misspelled warns about each variable that is no flag, but almost one of these. All others that begin with FIRN_ belong to
// somebody else: Kubernetes sets FIRN_PORT in the pods beside a service that is called firn.
func misspelled(flags *pflag.FlagSet, env map[string]string, only ...string) (all []doctor.Finding) {
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if len(only) == 0 || slices.Contains(only, f.Name) {
			known = append(known, strings.TrimPrefix(variable(f.Name), prefix))
		}
	})
	for _, name := range slices.Sorted(maps.Keys(env)) {
		given, ours := strings.CutPrefix(name, prefix)
		if meant := nearest(given, known); ours && env[name] != "" && meant != "" && meant != given {
			all = append(all, doctor.Finding{Level: doctor.Warn, About: name, Found: "is not used", Do: "did you mean " + prefix + meant + "?"})
		}
	}
	return all
}

// fromFile sets the flags that neither command line nor environment did from a YAML file. Every key in
// it must be a flag.
func (s sources) fromFile(flags *pflag.FlagSet, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return usagef("the config file can't be read: %w", err)
	}
	settings, err := readSettings(data)
	if err != nil {
		return usagef("%s: %w", path, err)
	}
	seen := make(map[string]int)
	for _, setting := range settings {
		where := fmt.Sprintf("%s: line %d: %s", path, setting.line, setting.key)
		f := flags.Lookup(setting.key)
		switch {
		case f == nil || f.Name == "config" || f.Name == "help":
			return usagef("%s: there is no such key; the keys are the flags of firn serve, without their dashes in front", where)
		case seen[setting.key] > 0:
			return usagef("%s is there already, on line %d; want it once", where, seen[setting.key])
		}
		seen[setting.key] = setting.line
		text, err := setting.text(f.Value.Type())
		if err != nil {
			return usagef("%s: %w", where, err)
		}
		if f.Changed {
			continue
		}
		s[f.Name] = where
		if err := s.set(flags, f, text); err != nil {
			return err
		}
	}
	return nil
}

func (s sources) set(flags *pflag.FlagSet, f *pflag.Flag, text string) error {
	err := flags.Set(f.Name, text)
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalid.Unwrap()
	}
	if err != nil {
		return usagef("%s: %w", s.of(f.Name), err)
	}
	return nil
}

// setting is a key of a config file with its value.
type setting struct {
	key   string
	line  int
	value *yaml.Node
}

// readSettings reads one YAML mapping, or nothing.
func readSettings(data []byte) ([]setting, error) {
	var document, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document; want one")
	}
	top := document.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want lines such as %q", top.Line, "http-addr: :8080")
	}
	var all []setting
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		all = append(all, setting{key.Value, key.Line, value})
	}
	return all, nil
}

// text is the value as a flag of a kind would be given it.
func (s setting) text(kind string) (string, error) {
	if kind == kindList && s.value.Kind == yaml.SequenceNode {
		var list []string
		for _, item := range s.value.Content {
			text, err := setting{value: item}.text("string")
			if err != nil {
				return "", err
			}
			list = append(list, text)
		}
		return strings.Join(list, ","), nil
	}
	want := "a string; put it in quotes if it looks like something else"
	var ok bool
	switch tag := s.value.ShortTag(); kind {
	case kindBool:
		want, ok = "true or false", tag == "!!bool"
	case kindNumber:
		want, ok = "a whole number", tag == "!!int"
	case kindShare:
		want, ok = "a number", tag == "!!float" || tag == "!!int"
	case kindList:
		want, ok = "a list of strings", tag == "!!str"
	default:
		ok = tag == "!!str" || tag == "!!timestamp"
	}
	if s.value.Kind != yaml.ScalarNode || !ok {
		return "", fmt.Errorf("it is %s; want %s", describe(s.value), want)
	}
	return s.value.Value, nil
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!str":
		return fmt.Sprintf("the string %.40q", n.Value)
	default:
		return fmt.Sprintf("%.40s", n.Value)
	}
}
