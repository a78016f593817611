package setting

import "testing"

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
