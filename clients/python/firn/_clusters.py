"""Which answers are of one cluster."""

from __future__ import annotations

from ._errors import MixedError


class Clusters:
    """The one cluster from which a client takes IDs. Two nodes that know nothing of each other give the same IDs.

    What it does is said by clients/conformance/clusters.json, for the clients in every language."""

    def __init__(self) -> None:
        self._cluster = self._node = ""  # the cluster, empty: none yet, and the node that answered with it last
        self._latest: dict[str, str] = {}  # by node: the cluster of its last answer that was taken
        self._former: set[str] = set()  # clusters of nodes, before theirs was founded again

    def take(self, node: str, cluster: str) -> None:
        """Take note of an answer; one without a cluster says nothing. MixedError is raised if its IDs must be dropped."""
        if not cluster:
            return
        if self._cluster and cluster != self._cluster:
            if cluster in self._former or self._latest.get(node) != self._cluster:
                raise MixedError(node, cluster, self._node, self._cluster)
            self._former.add(self._cluster)
        self._cluster, self._node = cluster, node
        self._latest[node] = cluster
