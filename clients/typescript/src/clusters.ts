import { MixedError } from "./errors.js";

/**
 * The one cluster from which a client takes IDs. Two nodes that know nothing of each other give the same IDs. What it does is
 * said by clients/conformance/clusters.json, for the clients in every language.
 */
export class Clusters {
  private cluster = ""; // "": none is known yet
  private node = ""; // that answered with it last
  private readonly latest = new Map<string, string>(); // by node: the cluster of its last answer that was taken
  private readonly former = new Set<string>(); // of nodes, before their cluster was founded again

  /** Takes note of an answer, and returns an error if its IDs must be dropped. One without a cluster says nothing. */
  take(node: string, cluster: string): MixedError | undefined {
    if (!cluster) return undefined;
    if (this.cluster && cluster !== this.cluster) {
      if (this.former.has(cluster) || this.latest.get(node) !== this.cluster)
        return new MixedError(node, cluster, this.node, this.cluster);
      this.former.add(this.cluster);
    }
    [this.cluster, this.node] = [cluster, node];
    this.latest.set(node, cluster);
    return undefined;
  }
}
