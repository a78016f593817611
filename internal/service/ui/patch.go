package ui

import "reflect"

// tree is what a page shows, as JSON. Trees within it are compared key by key, other values as a whole.
type tree map[string]any

// patch returns what changes from one tree to the next: absent values stay, null ones are removed, and a tree with
// another origin is sent as a whole.
func (before tree) patch(after tree) tree {
	if o, ok := after["origin"].(origin); ok && !reflect.DeepEqual(before["origin"], o) {
		before = nil
	}
	changes := tree{}
	for key := range before {
		if _, ok := after[key]; !ok {
			changes[key] = nil
		}
	}
	for key, value := range after {
		former, ok := before[key]
		if inner, is := value.(tree); is {
			was, _ := former.(tree)
			if c := was.patch(inner); len(c) > 0 {
				changes[key] = c
			}
		} else if !ok || !reflect.DeepEqual(former, value) {
			changes[key] = value
		}
	}
	return changes
}
