from __future__ import annotations

import json
import unittest
from pathlib import Path

import firn
from firn._clusters import Clusters
from firn._http import Answer

from .fleet import Behaviour, FakeTimeCase, Fleet, gives

VECTORS = Path(__file__).parents[2] / "conformance" / "clusters.json"


class TestClusters(unittest.TestCase):
    def test_the_vectors(self) -> None:
        for vector in json.loads(VECTORS.read_text()):
            clusters = Clusters()
            for answer in vector["answers"]:
                told = None
                try:
                    clusters.take(answer["node"], answer["cluster"])
                except firn.MixedError as e:
                    told = {"node": e.other, "cluster": e.other_cluster}
                    self.assertEqual((e.node, e.cluster), (answer["node"], answer["cluster"]))
                self.assertEqual(told, answer.get("mixed"), f"{vector['name']}: {answer}")


def of_cluster(cluster: str) -> Behaviour:
    async def behave(f: Fleet, n: int) -> Answer:
        answer = await gives(0.01)(f, n)
        answer.fields["firn-cluster"] = cluster
        return answer

    return behave


class TestAStranger(FakeTimeCase):
    async def test_no_id_of_another_cluster_is_given(self) -> None:
        for prefetch in 0, 10:
            f = Fleet(a=of_cluster("x"), b=of_cluster("y"))
            c = f.client(prefetch=prefetch, max_age=float(prefetch))
            await c.take(11)  # of a, which is the first to be asked
            with self.assertRaisesRegex(
                firn.MixedError, "http://b is of cluster y, and http://a was of cluster x; want the nodes of one cluster"
            ):
                await c.take(11)
