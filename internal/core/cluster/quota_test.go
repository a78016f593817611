package cluster

import (
	"bytes"
	"fmt"
	"testing"
)

func prefixed(prefix string) Definition {
	d := small(2, Allocation{})
	d.Prefix = prefix
	return d
}

// outcome is that of a command at a value.
func outcome(v Value, c Command) Outcome {
	_, out := Apply(v, Entry{Position: v.position + 1, Command: c})
	return out
}

// TestAPrefixBelongsToOneSequencer that lives: it is free again once that is destroyed.
func TestAPrefixBelongsToOneSequencer(t *testing.T) {
	create := func(name, prefix string) Command {
		return CreateSequencer{Sequencer: name, Definition: prefixed(prefix), SolePrefix: prefix != ""}
	}
	v := must(t, Value{}, create("invoices", "inv"), create("plain", ""), create("simple", ""))
	for _, v := range []Value{v, restore(t, checkpoint(t, v))} {
		if out, want := outcome(v, create("other", "inv")),
			`the prefix "inv" is that of the sequencer "invoices"; want another`; out.Result != Refused ||
			out.Why != want {
			t.Errorf("%v; want %s", out, want)
		}
		if out := outcome(v, create("invoices", "inv")); out.Result != Unchanged {
			t.Errorf("once more: %v", out)
		}
		must(t, v, create("orders", "ord"), DestroySequencer{"invoices", 0}, create("other", "inv"))
	}
}

// TestLogsOfBeforeKeepTheirPrefixes: an entry that does not ask whether its prefix is taken gets it, as it did; one
// that asks is refused as long as anybody has it.
func TestLogsOfBeforeKeepTheirPrefixes(t *testing.T) {
	v := Value{}
	for i, name := range []string{"a", "b"} {
		e, err := Decode(int64(i+1), fmt.Appendf(nil,
			`{"version":2,"command":"create-sequencer","args":{"sequencer":%q,"definition":{"nodes":2,`+
				`"prefix":"inv"}}}`, name))
		if err != nil {
			t.Fatal(err)
		}
		var out Outcome
		if v, out = Apply(v, e); out.Result != Applied {
			t.Errorf("%s: %v", name, out)
		}
	}
	asks := CreateSequencer{Sequencer: "c", Definition: prefixed("inv"), SolePrefix: true}
	for _, destroyed := range []string{"a", "b"} {
		if out := outcome(v, asks); out.Result != Refused {
			t.Errorf("before %s is destroyed: %v", destroyed, out)
		}
		v = must(t, v, DestroySequencer{destroyed, 0})
	}
	must(t, v, asks)
}

// TestQuotasAreOfNames: what others call theirs does not count, and nothing is counted that was destroyed or is there
// already.
func TestQuotasAreOfNames(t *testing.T) {
	create := func(name string, quotas ...Quota) Command {
		return CreateSequencer{Sequencer: name, Definition: small(2, Allocation{}), Quotas: quotas}
	}
	two, five := Quota{[]string{"inv-*", "bill"}, 2}, Quota{nil, 5}
	v := must(t, Value{}, create("orders"), create("inv-1", two, five), create("bill", five, two))
	want := "there are 2 sequencers of the names inv-*, bill, and the quota is 2; destroy one that nobody needs"
	if out := outcome(v, create("inv-2", five, two)); out.Result != Refused || out.Why != want {
		t.Errorf("%v; want %s", out, want)
	}
	if out := outcome(v, create("inv-1", two, five)); out.Result != Unchanged {
		t.Errorf("once more: %v", out)
	}
	must(t, v, DestroySequencer{"bill", 0}, create("inv-2", two, five))
	v = must(t, v, create("inv-2"), create("inv-3", five)) // others may create more of these names
	before := checkpoint(t, v)
	if out, want := outcome(v, create("any", five)),
		"there are 5 sequencers, and the quota is 5; destroy one that nobody needs"; out.Result != Refused ||
		out.Why != want {
		t.Errorf("%v; want %s", out, want)
	}
	if !bytes.Equal(checkpoint(t, v), before) {
		t.Error("a refused command changed the value")
	}
}
