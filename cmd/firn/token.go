package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

const tokenHelp = `Token makes a token for a caller, and the entry by which servers know it. The
first line of its output is the token: give it to the caller, and keep it
secret. After an empty line follows the entry: add it to the token file of every
server. The entry contains a hash, from which nobody can compute the token;
replace a lost token. With --output, token writes the token to a file that only
its owner can read, and prints the entry. It refuses to print a token to a file
that others may open.

A call for an ID attaches the server to the sequencer (the server takes a node
ID) only if the token allows attach or admin.

--sequencer limits a token to some sequencers, by names or by patterns such as
orders-*; --rate limits its IDs per second on each server. If a limited token
allows admin, it creates sequencers only with the prefixes that --prefix names,
by default none, and at most as many as --quota says, by default a tenth of
--max-sequencers.

With --hash, token reads a token from the first line of standard input, and
prints only its entry. The token has 16 to 4096 characters, without spaces.`

const tokenExamples = `  firn token --name orders --allow issue
  firn token --name ops --allow issue --allow admin
  firn token --name billing --allow issue --allow attach --sequencer 'invoices-*'
  firn token --name shop --allow admin --sequencer 'inv-*' --prefix inv --quota 20
  firn token --name guest --allow issue --sequencer 'invoices-*' --rate 10000
  firn token --name orders --allow issue --output orders.token >> tokens.yaml
  firn token --name orders --allow issue --hash < token.txt >> tokens.yaml`

// newToken is a token with its entry, as JSON has them.
type newToken struct {
	Token string     `json:"token,omitempty"` // empty: it was given
	Entry auth.Entry `json:"entry"`
}

func (p *program) tokenCommand() *cobra.Command {
	var made newToken
	var hash, asJSON bool
	var output string
	c := &cobra.Command{
		Use:     "token",
		Short:   "Make a token for a caller",
		Long:    tokenHelp,
		Example: tokenExamples,
		Args:    noArguments,
	}
	flags, e := c.Flags(), &made.Entry
	setting.Add(flags, &e.Name, "name", "name", "", "the name of the caller, for logs and errors",
		checked(auth.CheckName))
	addTexts(flags, &e.Allow, "allow", "right",
		"a right: issue (take IDs), open (open sealed IDs), order (have\n"+
			"IDs exceed one of another server whose clock is far ahead), attach\n"+
			"(make a server take a node ID of a sequencer) or admin (manage\n"+
			"sequencers and the cluster); repeat it for several", checkRight)
	must(c.RegisterFlagCompletionFunc("allow",
		cobra.FixedCompletions([]string{"issue", "open", "order", "attach", "admin"},
			cobra.ShellCompDirectiveNoFileComp)))
	addTexts(flags, &e.Sequencers, "sequencer", "pattern",
		"a sequencer that the token is for, or a pattern such as orders-*;\n"+
			"repeat it for several (default: all sequencers)", auth.CheckPattern)
	addTexts(flags, &e.Prefixes, "prefix", "pattern",
		"a prefix that the token may give to sequencers, or a pattern such\n"+
			"as inv*; repeat it for several (default: all, and none with\n--sequencer)", auth.CheckPrefix)
	setting.Add(flags, &e.Quota, "quota", setting.KindNumber, "",
		"the token creates a sequencer only while fewer than this many\n"+
			"match --sequencer (default: no limit, and with --sequencer a tenth\nof --max-sequencers)", parseQuota)
	setting.Add(flags, &e.Rate, "rate", setting.KindNumber, "",
		"how many IDs per second the token allows (default: no limit)", parseRate)
	setting.Bool(flags, &hash, "hash", "read a token from standard input, and print its entry")
	setting.Bool(flags, &asJSON, "json", `print a JSON object with "token" and "entry"`)
	secretFile(c, &output, "the token")
	c.RunE = func(*cobra.Command, []string) error {
		for _, name := range []string{"name", "allow"} {
			if !flags.Changed(name) {
				return usagef("--%s is missing; want it as in: firn token --name orders --allow issue", name)
			}
		}
		token := auth.NewToken()
		var err error
		switch {
		case hash && output != "":
			return usagef("--hash prints no token that --output could write; give one of them")
		case hash:
			token, err = readToken(p.stdin)
		case output != "":
			err = writeSecret(output, token+"\n")
		default:
			made.Token = token
			err = notForOthers(p.stdout)
		}
		if err != nil {
			return err
		}
		made.Entry.SHA256 = auth.Hash(token)
		if asJSON {
			return json.NewEncoder(p.stdout).Encode(made)
		}
		return p.printToken(made)
	}
	return c
}

func (p *program) printToken(made newToken) error {
	entry, err := yaml.Marshal([]auth.Entry{made.Entry})
	if err != nil {
		return err
	}
	if made.Token != "" {
		if err := p.printf("%s\n\n", made.Token); err != nil {
			return err
		}
	}
	return p.printf("%s", entry)
}

// readToken reads the first line.
func readToken(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading standard input: %w", err)
	}
	token := strings.TrimRight(line, "\r\n")
	if err := auth.CheckToken(token); err != nil {
		return "", usagef("standard input: %w", err)
	}
	return token, nil
}

// addTexts adds a flag that can be repeated, with another text each time.
func addTexts(fs *pflag.FlagSet, into *[]string, name, kind, usage string, check func(string) error) {
	setting.Add(fs, into, name, kind, "", usage, func(text string) ([]string, error) {
		if err := check(text); err != nil {
			return nil, err
		}
		if slices.Contains(*into, text) {
			return nil, fmt.Errorf("%.40q is there twice; want it once", text)
		}
		return append(*into, text), nil
	})
}

// checked returns a function that takes a text as it is, if it is right.
func checked(check func(string) error) func(string) (string, error) {
	return func(text string) (string, error) { return text, check(text) }
}

func checkRight(text string) error {
	_, err := auth.ParseRight(text)
	return err
}

func parseQuota(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a whole number; want how many sequencers, such as 20", text)
	}
	return n, auth.CheckQuota(n)
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number; want IDs per second, such as 10000", text)
	}
	return rate, auth.CheckRate(rate)
}
