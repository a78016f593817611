package setting

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// key is a key of a config file, with its value.
type key struct {
	name  string
	line  int
	value *yaml.Node
}

// readKeys reads one YAML mapping, or an empty file.
func readKeys(data []byte) ([]key, error) {
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
	var all []key
	for i := 0; i < len(top.Content); i += 2 {
		name, value := top.Content[i], top.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		all = append(all, key{name.Value, name.Line, value})
	}
	return all, nil
}

// itemKinds are the kinds of the items of lists.
var itemKinds = map[string]string{KindList: "string", KindNumbers: kindNumbered}

// kindNumbered is the kind of a number, or of a text with one.
const kindNumbered = "numbered"

// text returns a value as the text of a flag of a kind.
func (k key) text(kind string) (string, error) {
	if of, ok := itemKinds[kind]; ok && k.value.Kind == yaml.SequenceNode {
		var list []string
		for _, item := range k.value.Content {
			text, err := key{value: item}.text(of)
			if err != nil {
				return "", err
			}
			list = append(list, text)
		}
		return strings.Join(list, ","), nil
	}
	want := "a string; put it in quotes if it looks like something else"
	var ok bool
	switch tag := k.value.ShortTag(); kind {
	case KindBool:
		want, ok = "true or false", tag == "!!bool"
	case KindNumber:
		want, ok = "a whole number", tag == "!!int"
	case KindShare:
		want, ok = "a number", tag == "!!float" || tag == "!!int"
	case KindList:
		want, ok = "a list of strings", tag == "!!str"
	case KindNumbers, kindNumbered:
		want, ok = "a whole number, or a list such as [7, orders=9]", tag == "!!int" || tag == "!!str"
	default:
		ok = tag == "!!str" || tag == "!!timestamp"
	}
	if k.value.Kind != yaml.ScalarNode || !ok {
		return "", fmt.Errorf("it is %s; want %s", describe(k.value), want)
	}
	return k.value.Value, nil
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

// YAML returns the value of a flag as in a config file.
func YAML(kind, text string) (string, error) {
	alone := kind == KindNumbers && !strings.Contains(text, "=")
	if kind == KindBool || kind == KindNumber || kind == KindShare || alone {
		return text, nil
	}
	value := yaml.Node{}
	value.SetString(text)
	if kind == KindList {
		value = yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for item := range strings.SplitSeq(text, ",") {
			one := yaml.Node{}
			one.SetString(strings.TrimSpace(item))
			value.Content = append(value.Content, &one)
		}
	}
	made, err := yaml.Marshal(&value)
	return strings.TrimSuffix(string(made), "\n"), err
}
