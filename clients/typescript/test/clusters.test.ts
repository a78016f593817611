import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Clusters } from "../dist/clusters.js";
import { MixedError } from "../dist/index.js";
import { Fleet, gives, rejection, simulate } from "./simulation.js";

interface Vector {
  name: string;
  answers: { node: string; cluster: string; mixed?: { node: string; cluster: string } }[];
}

const vectors = JSON.parse(
  await readFile(new URL("../../conformance/clusters.json", import.meta.url), "utf8"),
) as Vector[];

for (const { name, answers } of vectors) {
  test(`cluster IDs: ${name}`, () => {
    const clusters = new Clusters();
    for (const { node, cluster, mixed } of answers) {
      const error = clusters.take(node, cluster);
      const told = error && { node: error.other, cluster: error.otherCluster };
      assert.deepEqual(told, mixed, `${node} ${cluster}`);
      if (error) assert.deepEqual([error.node, error.cluster], [node, cluster]);
    }
  });
}

for (const prefetch of [undefined, { count: 10, maxAge: 1000 }]) {
  test(`no ID of another cluster is given${prefetch ? ", with prefetch" : ""}`, () =>
    simulate(async () => {
      const fleet = new Fleet({ a: gives(1, { "firn-cluster": "x" }), b: gives(1, { "firn-cluster": "y" }) });
      const client = fleet.client("a b", prefetch && { prefetch });
      await client.take(11); // of b, which is the first to be asked
      const error = await rejection(client.take(11));
      assert.ok(error instanceof MixedError);
      assert.match(error.message, /^http:\/\/a: it is of cluster x, and http:\/\/b was of cluster y; want the nodes of one/);
    }));
}
