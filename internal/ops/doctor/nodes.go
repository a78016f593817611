package doctor

import (
	"slices"

	"github.com/firn-id/firn/internal/service/calls"
)

// NodeSeen is what a node says of its cluster.
type NodeSeen struct {
	URL    string
	Status calls.Status
	Err    error // why it says nothing
}

const nodesAbout = "nodes"

// CheckNodes returns what is wrong between nodes whose IDs callers mix: any two that are not of one cluster.
func CheckNodes(nodes []NodeSeen) (all []Finding) {
	for i, node := range nodes {
		switch {
		case node.Err != nil:
			all = append(all, node.silent(nodesAbout))
			continue
		case len(node.Status.Members) == 0:
			all = append(all, Warn.about(nodesAbout, "%s knows no member of its cluster yet", node.URL).
				do("look again once it is ready"))
			continue
		}
		all = append(all,
			OK.about(nodesAbout, "%s belongs to a cluster; members: %d", node.URL, len(node.Status.Members)))
		for _, other := range nodes[:i] {
			if other.Err == nil && len(other.Status.Members) > 0 && !node.sameCluster(other) {
				all = append(all, Fail.about(nodesAbout, "%s and %s belong to two clusters, which give the same IDs",
					other.URL, node.URL).
					do("take no IDs from both: give all nodes one store, by --store, --etcd or --quorum, or send "+
						"callers to only one of them"))
			}
		}
	}
	return all
}

// silent is the finding about a node that says nothing.
func (n NodeSeen) silent(about string) Finding {
	return Fail.about(about, "%s does not say its cluster: %v", n.URL, n.Err).
		do("check the address, which is that for administrators, and --token-file")
}

// sameCluster reports whether two nodes are of one cluster: they know a member in common, whose ID is by chance. Their
// cluster IDs do not tell: a copied store has that of the first.
func (n NodeSeen) sameCluster(other NodeSeen) bool {
	return slices.ContainsFunc(n.Status.Members, func(m calls.StatusMember) bool {
		return slices.ContainsFunc(other.Status.Members, func(o calls.StatusMember) bool { return o.ID == m.ID })
	})
}
