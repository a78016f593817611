package setting

import "testing"

// A number stands in a file as one, and a list of numbers with names as a text that reads the same.
func TestYAMLOfNumbers(t *testing.T) {
	for text, want := range map[string]string{"7": "7", "7,orders=9": "7,orders=9", "0x=1": "0x=1"} {
		made, err := YAML(KindNumbers, text)
		if err != nil || made != want {
			t.Errorf("%s is %s, %v; want %s", text, made, err, want)
		}
	}
}

// No content of a file makes the program panic.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"node: 5", "etcd: [a:1, {b: c}]", "&a [*a]", "&a {node: *a}", "? [x]\n: y", "node: [7, orders=9]",
		"--- !!binary x", "a: !!int b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		keys, err := readKeys([]byte(file))
		if err != nil {
			return
		}
		for _, k := range keys {
			for _, kind := range []string{KindBool, KindList, KindNumber, KindNumbers, "duration"} {
				_, _ = k.text(kind)
			}
		}
	})
}
