package sequencer

import "fmt"

const maxPrefix = 16

func (d Definition) validatePrefix() error {
	if !isPrefix(d.Prefix) {
		return fmt.Errorf("the prefix %.40q; want 1 to %d of a-z and 0-9, the first a letter, or none",
			d.Prefix, maxPrefix)
	}
	return nil
}

// isPrefix reports whether a prefix is empty or allowed.
func isPrefix(prefix string) bool {
	for i, c := range prefix {
		if (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(prefix) <= maxPrefix
}
