package sequencer

import "fmt"

// MaxName is how many bytes the name of a sequencer has at most.
const MaxName = 100

// NameError is returned when the name of a sequencer is invalid.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("the sequencer's name %.120q; want 1 to %d of a-z, 0-9, '.', '_' and '-'", e.Name, MaxName)
}

// CheckName checks the name of a sequencer. A *NameError is returned when it is not 1 to 100 of the characters
// a-z, 0-9, '.', '_' and '-'.
func CheckName(name string) error {
	ok := name != "" && len(name) <= MaxName
	for _, c := range []byte(name) {
		ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return &NameError{name}
	}
	return nil
}
