package calls_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/service/calls"
)

// An exact ID or owner goes before those that only begin so, and what is not clear lists who can be meant.
func TestMeant(t *testing.T) {
	all := []calls.Candidate{
		{"5f2a", "ids-1:7"},
		{"5f2abc", "ids-10:7"},
		{"9c", "ids-2:8"},
		{"d0", ""},
		{"e1", "twin"},
		{"e2", "twin"},
	}
	for text, want := range map[string]string{
		"5f2a": "5f2a", "5f2ab": "5f2abc", "9": "9c", "ids-2": "9c", "ids-1:7": "5f2a", "ids-1:": "5f2a",
		"d0": "d0", "e1": "e1",
		"5f":    `"5f" can be 2 members: 5f2a (ids-1:7), 5f2abc (ids-10:7); give more of the ID`,
		"ids-1": `"ids-1" can be 2 members: 5f2a (ids-1:7), 5f2abc (ids-10:7); give more of the ID`,
		"twin":  `"twin" can be 2 members: e1 (twin), e2 (twin); give more of the ID`,
		"x": `no member is "x"; want the ID or the name of one, or the beginning of it: 5f2a (ids-1:7), 5f2abc ` +
			`(ids-10:7), 9c (ids-2:8), d0, e1 (twin), e2 (twin)`,
		"": `no member is ""; want`,
	} {
		c, err := calls.Meant(text, all)
		if got := c.ID; err == nil && got != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q means %q, %v; want %s", text, got, err, want)
		}
	}
	if _, err := calls.Meant("a", nil); err == nil || !strings.HasSuffix(err.Error(), "there are no members") {
		t.Errorf("of nobody: %v", err)
	}
}
