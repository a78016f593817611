package io.github.firnid.client;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The one cluster from which a client takes IDs. Two nodes that know nothing of each other give the same IDs. What it does is said
 * by clients/conformance/clusters.json, for the clients in every language. Many threads can use it.
 */
final class Clusters {
    private String cluster = "", node = ""; // the cluster, empty: none yet, and the node that answered with it last
    private final Map<String, String> latest = new HashMap<>(); // by node: the cluster of its last answer that was taken
    private final Set<String> former = new HashSet<>(); // clusters of nodes, before theirs was founded again

    /** Takes note of an answer, and throws if its IDs must be dropped. One without a cluster says nothing. */
    synchronized void take(String node, String cluster) {
        if (cluster.isEmpty()) return;
        if (!this.cluster.isEmpty() && !cluster.equals(this.cluster)) {
            if (former.contains(cluster) || !this.cluster.equals(latest.get(node))) {
                throw new FirnException.Mixed(node, cluster, this.node, this.cluster);
            }
            former.add(this.cluster);
        }
        this.cluster = cluster;
        this.node = node;
        latest.put(node, cluster);
    }
}
