package deploy

import (
	"fmt"
	"strings"
	"unicode"
)

// Config is the file that firn serve --config reads, /etc/firn/firn.yaml.
type Config struct {
	Keys []Key
}

// Key is a line of a config file, with what is said about it.
type Key struct {
	Name  string
	About []string // lines of its comment
	YAML  string   // its value, as YAML on one line
	Set   bool     // or else it is a comment: the default, or an example
}

// Text is the file.
func (c Config) Text(o Origin) (string, error) {
	for _, k := range c.Keys {
		for _, line := range append([]string{k.Name, k.YAML}, k.About...) {
			if strings.ContainsFunc(line, unicode.IsControl) {
				return "", &ParameterError{k.Name, fmt.Errorf("%.80q has a control character in it; want one line", line)}
			}
		}
	}
	return text(o, "firn.yaml", c)
}
