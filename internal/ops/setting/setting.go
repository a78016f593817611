// Package setting reads settings from flags, environment variables and a config file, each with the same
// function. It knows no setting by name.
package setting

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// value is a flag whose text a function reads, with an error that says what would be right. It is the same for
// the command line, the environment and the config file.
type value[T any] struct {
	into  *T
	text  string
	kind  string // its kind in help and in the config file
	parse func(string) (T, error)
}

func (v *value[T]) Set(text string) error {
	if v.kind == KindFile && secret.MatchString(text) {
		return errSecret
	}
	parsed, err := v.parse(text)
	if err != nil {
		return err
	}
	*v.into, v.text = parsed, text
	return nil
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return v.kind }

// Add adds a flag to fs, with its default as text. Without a text the value of into is the default. A short name
// may follow the long one: "count,n".
func Add[T any](fs *pflag.FlagSet, into *T, name, kind, text, usage string, parse func(string) (T, error)) *pflag.Flag {
	v := &value[T]{into: into, kind: kind, parse: parse}
	if text != "" {
		if err := v.Set(text); err != nil {
			panic(fmt.Sprintf("the default of --%s: %v", name, err))
		}
	}
	long, short, _ := strings.Cut(name, ",")
	return fs.VarPF(v, long, short, usage)
}

// Bool adds a flag that is true or false, by default false.
func Bool(fs *pflag.FlagSet, into *bool, name, usage string) {
	f := Add(fs, into, name, KindBool, "", usage, func(text string) (bool, error) {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return false, fmt.Errorf("%.40q is neither true nor false", text)
		}
		return b, nil
	})
	f.NoOptDefVal = "true"
}

// Repeated has a flag that is given several times mean all of them, as one text with commas between.
func Repeated(f *pflag.Flag) { f.Value = repeated{f.Value} }

type repeated struct{ pflag.Value }

func (r repeated) Set(text string) error {
	if before := r.String(); before != "" {
		text = before + "," + text
	}
	return r.Value.Set(text)
}

// Kinds of flags that this package knows. The config file does not write the first five as a string.
const (
	KindBool    = "bool"
	KindNumber  = "number"
	KindShare   = "share"
	KindList    = "list"
	KindNumbers = "numbers" // a number, or a list of numbers and texts such as orders=9
	KindFile    = "file"    // its name, and no secret
)

// Duration adds a duration of at least the given one.
func Duration(fs *pflag.FlagSet, into *time.Duration, name, text string, least time.Duration, usage string) {
	DurationIn(fs, into, name, text, least, math.MaxInt64, usage)
}

// DurationIn adds a duration in a range.
func DurationIn(fs *pflag.FlagSet, into *time.Duration, name, text string, least, most time.Duration, usage string) {
	Add(fs, into, name, "duration", text, usage, func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%.40q is not a duration; want one such as 500ms, 10s or 1m30s", text)
		}
		if d < least {
			return 0, fmt.Errorf("%v is too short; want at least %v", d, least)
		}
		if d > most {
			return 0, fmt.Errorf("%v is too long; want at most %v", d, most)
		}
		return d, nil
	})
}

// Number adds a whole number of at least the given one.
func Number[N int | int64](fs *pflag.FlagSet, into *N, name, text string, least int64, usage string) {
	Add(fs, into, name, KindNumber, text, usage, func(text string) (N, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || int64(N(n)) != n {
			return 0, fmt.Errorf("%.40q is not right; want a whole number from %d", text, least)
		}
		return N(n), nil
	})
}

// OneOf returns a function that reads one of the words.
func OneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if slices.Contains(words, text) {
			return text, nil
		}
		return "", fmt.Errorf("%.40q is not right; want one of %v", text, words)
	}
}

// Text adds a flag that takes any text. Its default is the value of into.
func Text(fs *pflag.FlagSet, into *string, name, kind, usage string) {
	Add(fs, into, name, kind, *into, usage, func(text string) (string, error) { return text, nil })
}

// secret matches what somebody may give in place of the file that holds it: a token, a key that seals, the key of a
// quorum. Errors of files show their names.
var secret = regexp.MustCompile(`^(firn_[-_A-Za-z0-9]{40,}|[0-9]{1,5} [+/A-Za-z0-9]{22,}={0,` +
	`2}|firn1-[-a-z0-9]{40,})\s*$`)

var errSecret = errors.New("this is a secret, which is not shown here; want the name of the file that holds it. " +
	"Other users of this machine may have seen it: replace it")

// List adds a flag with a list of texts, separated by commas.
func List(fs *pflag.FlagSet, into *[]string, name, usage string) {
	Add(fs, into, name, KindList, "", usage, ParseList)
}

// ParseList reads a list of texts, separated by commas.
func ParseList(text string) ([]string, error) {
	list := strings.Split(text, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			return nil, fmt.Errorf("%.80q has an empty item; want host:port, with commas between", text)
		}
	}
	return list, nil
}
