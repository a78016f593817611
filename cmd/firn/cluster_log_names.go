package main

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
)

// nodeNames are the names of nodes by their member IDs, as far as a server knows them.
type nodeNames struct {
	ask   remote.Client
	names map[string]string
	asked time.Time
}

// askAgain is how long after a question another one is worth it, for a member that is not known.
const askAgain = 2 * time.Second

var memberID = regexp.MustCompile(`\b[a-z2-7]{13}\b`)

// add puts the names of nodes before the member IDs in a text. Without an answer the text stays as it is.
func (n *nodeNames) add(ctx context.Context, text string) string {
	return memberID.ReplaceAllStringFunc(text, func(id string) string {
		if _, known := n.names[id]; !known && time.Since(n.asked) > askAgain {
			n.read(ctx)
		}
		if name := n.names[id]; name != "" {
			return console.ShownText(name) + " (" + id + ")"
		}
		return id
	})
}

func (n *nodeNames) read(ctx context.Context) {
	var s calls.Status
	if _, err := n.ask.Call(ctx, http.MethodGet, "/api/v1/cluster", nil, &s); err == nil {
		n.names = map[string]string{}
		for _, node := range s.Nodes {
			for _, id := range node.Members {
				n.names[id] = node.Name
			}
		}
	}
	n.asked = time.Now()
}
