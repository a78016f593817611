package httpapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/packed"
)

// acceptsPacked reports whether a caller wants packed IDs: its Accept names their type, with a weight above zero that is not
// below that of JSON. All others get JSON, whatever they accept: it is the default, and what errors are in.
func acceptsPacked(h http.Header) bool {
	accept := strings.Join(h["Accept"], ",")
	switch {
	case accept == packed.Type:
		return true
	case !strings.Contains(strings.ToLower(accept), packed.Type):
		return false
	}
	var forPacked, forJSON float64
	exact := 0 // how exactly a range names JSON
	ranks := map[string]int{"*/*": 1, "application/*": 2, "application/json": 3}
	for one := range strings.SplitSeq(accept, ",") {
		name, parameters, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := parameters["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		switch rank := ranks[name]; {
		case name == packed.Type:
			forPacked = weight
		case rank > exact:
			exact, forJSON = rank, weight
		}
	}
	return forPacked > 0 && forPacked >= forJSON
}
