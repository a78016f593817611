package reason

import (
	"errors"
	"fmt"
	"testing"
)

// The reason of an error is the first that it or what it wraps has.
func TestOf(t *testing.T) {
	plain := errors.New("plain")
	waiting := New("waiting", "no node ID is free")
	for err, want := range map[error]string{
		plain:                          "",
		waiting:                        "waiting",
		fmt.Errorf("now: %w", waiting): "waiting",
		With("refused", waiting):       "refused",
		With("", waiting):              "waiting",
		errors.Join(plain, waiting):    "waiting",
		fmt.Errorf("%w: %w", plain, New("a", "b")): "a",
	} {
		if got := Of(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if err := With("refused", plain); err.Error() != "plain" || !errors.Is(err, plain) || With("", plain) != plain ||
		Of(nil) != "" {
		t.Errorf("%v wraps %v: %v", err, plain, errors.Is(err, plain))
	}
}
