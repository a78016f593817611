package setting

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/base/files"
)

// prefix begins the name of every variable.
const prefix = "FIRN_"

// Variable returns the environment variable of a flag: FIRN_HTTP_ADDR for --http-addr.
func Variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Sources has the source of each flag's value, for errors: "--node", "FIRN_NODE" or "firn.yaml: node".
type Sources map[string]string

// Of returns the source of a flag's value.
func (s Sources) Of(flag string) string { return cmp.Or(s[flag], "--"+flag) }

// FromEnvironment sets the flags that the command line did not set. It ignores empty variables, and those that
// are not firn's flags.
func (s Sources) FromEnvironment(flags *pflag.FlagSet, env map[string]string, only ...string) error {
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		text := env[Variable(f.Name)]
		if f.Changed || text == "" || f.Name == "help" || first != nil ||
			len(only) > 0 && !slices.Contains(only, f.Name) {
			return
		}
		s[f.Name] = Variable(f.Name)
		first = s.set(flags, f, text)
	})
	return first
}

// FromFile sets the flags that neither command line nor environment set, from a YAML file. Every key in it must
// be a flag.
func (s Sources) FromFile(flags *pflag.FlagSet, path string) error {
	data, err := files.ReadOnce(path)
	if err != nil {
		return fmt.Errorf("the config file can't be read: %w", err)
	}
	keys, err := readKeys(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	seen := make(map[string]int)
	for _, k := range keys {
		where := fmt.Sprintf("%s: line %d: %s", path, k.line, k.name)
		f := flags.Lookup(k.name)
		switch {
		case f == nil || f.Name == "config" || f.Name == "help":
			var names []string
			flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			if meant := Nearest(k.name, names); f == nil && meant != "" {
				return fmt.Errorf("%s: there is no such key; did you mean %s?", where, meant)
			}
			return fmt.Errorf("%s: there is no such key; the keys are the flags of firn serve, without their dashes "+
				"in front", where)
		case seen[k.name] > 0:
			return fmt.Errorf("%s is there already, on line %d; want it once", where, seen[k.name])
		}
		seen[k.name] = k.line
		text, err := k.text(f.Value.Type())
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
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

func (s Sources) set(flags *pflag.FlagSet, f *pflag.Flag, text string) error {
	err := flags.Set(f.Name, text)
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = invalid.Unwrap()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Of(f.Name), err)
	}
	return nil
}

// ofOthers matches variables that others set: Kubernetes, in a pod beside a service whose name begins with firn, such
// as FIRN_PORT=tcp://10.0.0.1:8080; and who tests firn.
var ofOthers = regexp.MustCompile(
	`^FIRN_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)=|PORT=(tcp|udp|sctp)://|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=)` +
		`|^FIRN_(TESTS|TEST_\w+|PROGRAMS|SCREENSHOTS|SEED)=`)

// Unknown is a variable that begins with FIRN_ and sets no flag. Meant is the variable whose name is close to it;
// empty: there is none.
type Unknown struct{ Given, Meant string }

// Unknowns returns the variables that set none of these flags. It leaves out empty ones, and those that others set.
func Unknowns(env map[string]string, flags ...*pflag.FlagSet) (all []Unknown) {
	var known []string
	for _, fs := range flags {
		fs.VisitAll(func(f *pflag.Flag) { known = append(known, strings.TrimPrefix(Variable(f.Name), prefix)) })
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		given, ours := strings.CutPrefix(name, prefix)
		if !ours || env[name] == "" || slices.Contains(known, given) || ofOthers.MatchString(name+"="+env[name]) {
			continue
		}
		one := Unknown{Given: name}
		if meant := Nearest(given, known); meant != "" {
			one.Meant = prefix + meant
		}
		all = append(all, one)
	}
	return all
}
