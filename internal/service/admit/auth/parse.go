package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var errNoTokens = errors.New("no tokens; want at least one, as `firn token` prints it")

// parseTokens reads a file of tokens. Its errors begin with the line.
func parseTokens(data []byte) ([]Entry, error) {
	list, err := readList(data)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	names, hashes := map[string]int{}, map[string]int{}
	for _, item := range list {
		e, err := readEntry(item)
		if err != nil {
			return nil, err
		}
		if line, ok := names[e.Name]; ok {
			return nil, fmt.Errorf("line %d: name: %q is that of the entry on line %d; want another",
				item.Line, e.Name, line)
		}
		if line, ok := hashes[e.SHA256]; ok {
			return nil, fmt.Errorf("line %d: sha256: the token is that of the entry on line %d; want another, or "+
				"one entry", item.Line, line)
		}
		names[e.Name], hashes[e.SHA256] = item.Line, item.Line
		entries = append(entries, e)
	}
	return entries, nil
}

// readList reads one YAML list that is not empty.
func readList(data []byte) ([]*yaml.Node, error) {
	var document, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, errNoTokens
	} else if err != nil {
		return nil, noYAML(err)
	}
	if err := d.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: another document begins; want one", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, noYAML(err)
	}
	top := document.Content[0]
	switch {
	case top.Kind == yaml.ScalarNode && top.ShortTag() == "!!null",
		top.Kind == yaml.SequenceNode && len(top.Content) == 0:
		return nil, errNoTokens
	case top.Kind != yaml.SequenceNode:
		return nil, fmt.Errorf("line %d: it is %s; want a list of entries that begin with %q", top.Line,
			describe(top), "- name: ")
	}
	return top.Content, nil
}

var yamlLine = regexp.MustCompile(`line \d+: `)

// noYAML is an error of package yaml without what it cites of the file: its aliases.
func noYAML(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "anchor") {
		return fmt.Errorf("%san alias, which begins with *; quote the text if it is not meant as one",
			yamlLine.FindString(text))
	}
	return fmt.Errorf("%snot YAML: %s", yamlLine.FindString(text), yamlLine.ReplaceAllString(text, ""))
}

// keys are those of an entry. Each reads its value; an error begins with the line.
var keys = map[string]func(*Entry, *yaml.Node) error{
	"name":       func(e *Entry, n *yaml.Node) error { return readText(n, "name", &e.Name, CheckName) },
	"sha256":     readHash,
	"allow":      func(e *Entry, n *yaml.Node) error { return readTexts(n, "allow", &e.Allow, checkRight) },
	"sequencers": readSequencers,
	"prefixes":   func(e *Entry, n *yaml.Node) error { return readTexts(n, "prefixes", &e.Prefixes, CheckPrefix) },
	"quota":      readQuota,
	"rate":       readRate,
}

func checkRight(text string) error {
	_, err := ParseRight(text)
	return err
}

func readEntry(n *yaml.Node) (e Entry, _ error) {
	if n.Kind != yaml.MappingNode {
		return e, fmt.Errorf("line %d: the entry is %s; want keys and values such as %q", n.Line, describe(n),
			"name: orders-service")
	}
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := keys[key.Value]
		if !ok || key.Kind != yaml.ScalarNode {
			return e, fmt.Errorf("line %d: there is no key %s; want name, sha256, allow, sequencers, prefixes, quota "+
				"and rate", key.Line, describe(key))
		}
		if line, ok := lines[key.Value]; ok {
			return e, fmt.Errorf("line %d: %s: already given on line %d; want it once", key.Line, key.Value, line)
		}
		lines[key.Value] = key.Line
		if err := read(&e, value); err != nil {
			return e, err
		}
	}
	for _, key := range []string{"name", "sha256", "allow"} {
		if lines[key] == 0 {
			return e, fmt.Errorf("line %d: the entry has no %s; want name, sha256 and allow in each", n.Line, key)
		}
	}
	return e, nil
}

// readText reads a scalar as it is written: 12 is a name, too.
func readText(n *yaml.Node, key string, into *string, check func(string) error) error {
	if n.Kind != yaml.ScalarNode || n.Style&yaml.TaggedStyle != 0 || n.ShortTag() == "!!null" {
		return fmt.Errorf("line %d: %s: it is %s; want text", n.Line, key, describe(n))
	}
	if err := check(n.Value); err != nil {
		return fmt.Errorf("line %d: %s: %w", n.Line, key, err)
	}
	*into = n.Value
	return nil
}

func readTexts(n *yaml.Node, key string, into *[]string, check func(string) error) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return fmt.Errorf("line %d: %s: it is %s; want a list such as [a, b]", n.Line, key, describe(n))
	}
	lines := map[string]int{}
	for _, item := range n.Content {
		var text string
		if err := readText(item, key, &text, check); err != nil {
			return err
		}
		if line, ok := lines[text]; ok {
			return fmt.Errorf("line %d: %s: %s is already given on line %d; want it once", item.Line, key,
				shown(text), line)
		}
		lines[text] = item.Line
		*into = append(*into, text)
	}
	return nil
}

func readHash(e *Entry, n *yaml.Node) error {
	err := readText(n, "sha256", &e.SHA256, checkHash)
	e.SHA256 = strings.ToLower(e.SHA256)
	return err
}

func readSequencers(e *Entry, n *yaml.Node) error {
	if err := readTexts(n, "sequencers", &e.Sequencers, CheckPattern); err != nil {
		return err
	}
	if size := len(strings.Join(e.Sequencers, "")); size > maxPatterns {
		return fmt.Errorf("line %d: sequencers: they have %d bytes together; want at most %d", n.Line,
			size, maxPatterns)
	}
	return nil
}

func readQuota(e *Entry, n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&e.Quota) != nil {
		return fmt.Errorf("line %d: quota: it is %s; want a whole number", n.Line, describe(n))
	}
	if err := CheckQuota(e.Quota); err != nil {
		return fmt.Errorf("line %d: quota: %w", n.Line, err)
	}
	return nil
}

func readRate(e *Entry, n *yaml.Node) error {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || n.Decode(&e.Rate) != nil {
		return fmt.Errorf("line %d: rate: it is %s; want a number", n.Line, describe(n))
	}
	if err := CheckRate(e.Rate); err != nil {
		return fmt.Errorf("line %d: rate: %w", n.Line, err)
	}
	return nil
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Style&yaml.TaggedStyle != 0:
		return "a value with a tag"
	case n.ShortTag() == "!!null":
		return "empty"
	default:
		return shown(n.Value)
	}
}
