package doctor

import "github.com/firn-id/firn/internal/core/cluster"

// CheckRegions returns what is wrong between regions: two clusters that share node IDs, or a sequencer whose IDs are
// not alike in both.
func CheckRegions(nodes []NodeSeen) (all []Finding) {
	for i, node := range nodes {
		all = append(all, node.check())
		for _, other := range nodes[:i] {
			if node.alone() || other.alone() || node.sameCluster(other) {
				continue
			}
			all = append(all, node.against(other)...)
		}
	}
	return all
}

const regionsAbout = "regions"

func (n NodeSeen) check() Finding {
	switch {
	case n.Err != nil:
		return n.silent(regionsAbout)
	case n.alone():
		return Warn.about(regionsAbout, "%s has no sequencer yet, so its region is open", n.URL).
			do("look again once its nodes are ready")
	default:
		return OK.about(regionsAbout, "%s is of the region %v: %d members, %d sequencers", n.URL, n.region(),
			len(n.Status.Members), len(n.Status.Sequencers))
	}
}

// alone reports whether nothing is known of its region.
func (n NodeSeen) alone() bool { return n.Err != nil || len(n.Status.Sequencers) == 0 }

func (n NodeSeen) region() cluster.Region { return n.Status.Sequencers[0].Region }

// against compares two clusters.
func (n NodeSeen) against(other NodeSeen) (all []Finding) {
	if n.region().Overlaps(other.region()) {
		all = append(all, Fail.about(regionsAbout, "%s of the region %v and %s of the region %v share node IDs",
			other.URL, other.region(), n.URL, n.region()).
			do("their IDs can be equal: stop one of the two, and start its nodes on an empty store with a region that "+
				"no other has"))
	}
	for _, a := range other.Status.Sequencers {
		for _, b := range n.Status.Sequencers {
			if a.Name != b.Name || alike(a.Definition).Equal(alike(b.Definition)) {
				continue
			}
			d := alike(a.Definition).Differences(alike(b.Definition))[0]
			all = append(all, Fail.about(regionsAbout, "the sequencer %q differs: %s is %s at %s, and %s at %s", a.Name,
				d.Field, d.InForce, other.URL, d.Wanted, n.URL).
				do("their IDs can be equal: take IDs of one of the two only, and create another name with one "+
					"definition in all regions"))
		}
	}
	return all
}

// alike returns what must be alike in all regions, of a definition: what an ID is made of.
func alike(d cluster.Definition) cluster.Definition {
	return cluster.Definition{Kind: d.Kind, Nodes: d.Capacity(), Layout: d.Layout, Scattered: d.Scattered}
}
