// Package clusterid compares the cluster IDs in the answers of nodes. Two nodes that know nothing of each other give
// the same IDs, so nobody may take IDs from both.
package clusterid

import (
	"fmt"
	"regexp"
	"slices"
)

// Key is the key of the store that holds the cluster ID.
const Key = "cluster"

// Header is the HTTP header of the cluster ID, in every answer.
const Header = "Firn-Cluster"

// Trailer is the gRPC metadata of the cluster ID, in every answer.
const Trailer = "firn-cluster"

var valid = regexp.MustCompile(`^[0-9A-Za-z]{1,64}$`)

// Validate returns an error unless a text can be a cluster ID.
func Validate(id string) error {
	if !valid.MatchString(id) {
		return fmt.Errorf("the cluster ID is %.80q; want 1 to 64 letters and digits", id)
	}
	return nil
}

// Known is the one cluster from which a caller takes IDs. The zero value knows none yet. It is not safe for concurrent
// use.
//
// clients/conformance/clusters.json says what it does, for the clients in every language.
type Known struct {
	cluster string            // empty: none yet
	node    string            // that answered with it last
	latest  map[string]string // by node: the cluster of its latest answer that was taken
	former  []string          // clusters that nodes were of before theirs was founded again
}

// Take takes note of an answer. An answer without a cluster, as older nodes give, says nothing.
//
// A *MixedError is returned when the answer is of another cluster, and its IDs must then be dropped: the node never was
// of the known cluster, or of that no more when another node showed that it was founded again.
func (k *Known) Take(node, cluster string) *MixedError {
	switch {
	case cluster == "":
		return nil
	case k.cluster == "" || cluster == k.cluster:
	case slices.Contains(k.former, cluster) || k.latest[node] != k.cluster:
		return &MixedError{Node: node, Cluster: cluster, Other: k.node, OtherCluster: k.cluster}
	default:
		k.former = append(k.former, k.cluster)
	}
	if k.latest == nil {
		k.latest = map[string]string{}
	}
	k.cluster, k.node, k.latest[node] = cluster, node, cluster
	return nil
}

// Cluster returns the known cluster; empty: none yet.
func (k *Known) Cluster() string { return k.cluster }

// MixedError is the error of an answer of another cluster than the known one.
type MixedError struct {
	Node, Cluster       string // that answered, and its cluster
	Other, OtherCluster string // the node that answered last before, and the known cluster
}

// Error names both nodes and both clusters.
func (e *MixedError) Error() string {
	if e.Node == e.Other {
		return fmt.Sprintf("%s is of cluster %s, and was of cluster %s before: nodes of several clusters behind one "+
			"address give the same IDs twice; "+
			"have it lead to the nodes of one cluster", e.Node, e.Cluster, e.OtherCluster)
	}
	return fmt.Sprintf("%s is of cluster %s, and %s of cluster %s: nodes of several clusters give the same IDs twice; "+
		"name the nodes of one cluster", e.Node, e.Cluster, e.Other, e.OtherCluster)
}
