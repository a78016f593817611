import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Client, ClosedError, codes, NodeError } from "../dist/index.js";
import { Fleet, gives, hangs, packed, refuses, rejection, simulate, sleep } from "./simulation.js";

test("nodes are URLs of a host, each there once", () => {
  new Client(["http://a:8080", "https://B:8443/", "http://[::1]:80", "https://c:443"]);
  for (const [nodes, wanted] of [
    [[], /the nodes are none; want one or more/],
    [["a:8080"], /node 1 is "a:8080"; want http or https/],
    [["ftp://a"], /node 1 is "ftp:\/\/a"/],
    [["http://a", "http://:8080"], /node 2 |Invalid URL/],
    [["http://a/ids"], /node 1 is "http:\/\/a\/ids"/],
    [["http://a?x=1"], /node 1/],
    [["http://a", "http://b", "http://A:80/"], /each once/],
    [["http://me:secret@a"], /node 1 has a user, for which there is the option token/],
    [["http://me:secret@a:b"], /node 1 has a user/],
    [["unix:/run/firn.sock"], /node 1/],
  ] as const) {
    assert.throws(
      () => new Client(nodes),
      (e: TypeError) => e instanceof TypeError && wanted.test(e.message) && !e.message.includes("secret"),
      nodes.join(" "),
    );
  }
});

test("wrong options and arguments are RangeErrors, and nothing is sent", () =>
  simulate(async () => {
    for (const [options, wanted] of [
      [{ timeout: 0 }, /timeout is 0; want a whole number from 1 to 2147483647/],
      [{ timeout: NaN }, /timeout is NaN/],
      [{ timeout: 2 ** 31 }, /timeout is 2147483648/],
      [{ prefetch: { count: 0, maxAge: 1 } }, /prefetch.count is 0; want a whole number from 1 to 100000/],
      [{ prefetch: { count: 100_001, maxAge: 1 } }, /prefetch.count is 100001/],
      [{ prefetch: { count: 1, maxAge: 0 } }, /prefetch.maxAge is 0/],
    ] as const) {
      assert.throws(() => new Client(["http://a"], options), { name: "RangeError", message: wanted });
    }
    for (const nodes of ["http://a", undefined, {}]) {
      const message = /the nodes are of type (string|undefined|object); want a list of URLs/;
      assert.throws(() => new Client(nodes as unknown as string[]), { name: "TypeError", message });
    }
    const fleet = new Fleet({ a: gives(0) });
    assert.deepEqual(await fleet.client("a").take(0), []);
    assert.deepEqual(await fleet.client("a").sequencer("x", "sealed").take(0), []);
    for (const count of [-1, 1.5, NaN]) await assert.rejects(fleet.client("a").take(count), RangeError);
    await assert.rejects(fleet.client("a").next({ timeout: -1 }), RangeError);
    assert.equal(fleet.requests("a"), 0);
  }));

test("many IDs take one request for each 100000, and are in order", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(0), b: gives(0) });
    const ids = await fleet.client("a b").sequencer("orders").take(200_001, { timeout: 60_000 });
    const path = "/api/v1/sequencers/orders/id";
    assert.deepEqual(fleet.paths.sort(), [path, `${path}s?count=100000`, `${path}s?count=100000`]);
    assert.equal(new Set(ids).size, 200_001);
    assert.ok(ids.every((id, i) => id > (ids[i - 1] ?? 0n)));
  }));

test("the IDs of a sequencer that scatters them come as they are, but none twice", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: async () => packed([7n, 9n, 8n]) });
    assert.deepEqual(await fleet.client("a").take(3), [7n, 9n, 8n]);
    fleet.nodes["a"] = async () => packed([7n, 8n, 7n]);
    assert.match((await rejection<Error>(fleet.client("a").take(3))).message, /want 3 different IDs above 0/);
  }));

test("the greatest ID is exact, as a bigint and as text", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: async () => packed([9223372036854775807n]) });
    const id: bigint = await fleet.client("a").next();
    const text: string = await fleet.client("a", { form: "decimal" }).next();
    assert.deepEqual([id, text], [9223372036854775807n, "9223372036854775807"]);
    assert.equal(JSON.stringify({ text }), '{"text":"9223372036854775807"}');
    const other: string[] = await fleet.client("a").sequencer("", "base32").take(1);
    assert.deepEqual(other, ["7ZZZZZZZZZZZZ"]);
    const inherited: string = await fleet.client("a", { form: "hex" }).sequencer("orders").next();
    assert.equal(inherited, "7fffffffffffffff");
  }));

test("nodes write the other forms", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1) });
    const orders = fleet.client("a").sequencer("orders", "prefixed");
    assert.match(await orders.next(), /^prefixed_\d+$/);
    assert.equal((await orders.take(3)).length, 3);
    assert.deepEqual(fleet.paths, [
      "/api/v1/sequencers/orders/id?form=prefixed",
      "/api/v1/sequencers/orders/ids?count=3&form=prefixed",
    ]);
    for (const json of [{ id: 1 }, { ids: ["a", "a"] }, { ids: ["a"] }, { ids: 2 }, { ids: null }, [], null]) {
      fleet.nodes["a"] = async () => Response.json(json);
      assert.match((await rejection<Error>(orders.take(2, { timeout: 30 }))).message, /http:\/\/a: /);
    }
  }));

test("nodes convert IDs", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: async () => Response.json({ id: 5, id_str: "5", text: "1-0Z8XHYq9t0Y" }), b: hangs });
    const orders = fleet.client("a b").sequencer("orders");
    assert.equal(await orders.convert(5n, "sealed"), "1-0Z8XHYq9t0Y");
    await orders.convert("ord_0", "decimal");
    assert.deepEqual(fleet.paths.slice(-1), ["/api/v1/sequencers/orders/ids/ord_0?form=decimal"]);
    await orders.convert("1234567890123456", "decimal", { as: "hex" });
    await orders.convert(1234567890123456n, "hex");
    const path = "/api/v1/sequencers/orders/ids/1234567890123456?form=";
    assert.deepEqual(fleet.paths.slice(-2), [`${path}decimal&as=hex`, `${path}hex&as=decimal`]);
    for (const id of ["", "a/b"]) {
      await assert.rejects(orders.convert(id, "decimal"), { name: "SyntaxError", message: / is not an ID in any form/ });
    }
    fleet.nodes["a"] = refuses(400, "bad_request");
    await assert.rejects(orders.convert(5n, "uuid"), { name: "NodeError", code: "bad_request" });
  }));

test("texts are prefetched, too", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1) });
    const client = fleet.client("a", { form: "sealed", prefetch: { count: 10, maxAge: 1000 } });
    const ids = [await client.next(), ...(await client.take(7)), ...(await client.take(9))];
    assert.equal(new Set(ids).size, 17);
    assert.equal(client.sequencer("").next instanceof Function, true);
  }));

test("sequencers of one name and form share what they know and hold", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1) });
    const client = fleet.client("a", { prefetch: { count: 100, maxAge: 1000 } });
    await client.sequencer("orders").next();
    await client.sequencer("orders", "hex").next();
    assert.equal(fleet.requests("a"), 1);
    await client.sequencer("orders/../x").next();
    assert.equal(fleet.paths[1], "/api/v1/sequencers/orders%2F..%2Fx/ids?count=101");
  }));

for (const prefetch of [undefined, { count: 10, maxAge: 60_000 }]) {
  test(`close waits for calls, and ends everything else${prefetch ? ", with prefetch" : ""}`, () =>
    simulate(async () => {
      const fleet = new Fleet({ a: gives(500), b: hangs });
      let attempts = 0;
      const client = fleet.client("a b", { ...(prefetch && { prefetch }), hooks: { attempt: () => attempts++ } });
      const began = performance.now();
      const calls = Array.from({ length: 5 }, () => client.next());
      await sleep(0);
      await client.close();
      assert.ok(performance.now() - began >= 500 && performance.now() - began <= 700, `${performance.now() - began}`);
      await Promise.all(calls);
      await sleep(0);
      assert.equal(attempts, fleet.requests("a", "b"), "a request goes on");
      await assert.rejects(client.next(), ClosedError);
      await assert.rejects(client.sequencer("orders").take(2), { message: "the client is closed" });
      await client.close();
    }));
}

test("the token goes with every request, and is never told", () =>
  simulate(async () => {
    const told: unknown[] = [];
    const seen: (string | null)[] = [];
    const fleet = new Fleet({
      a: async (f, n, request) => {
        seen.push(request.headers.get("authorization"));
        return (seen.length === 2 ? refuses(401, "unauthenticated") : gives(1))(f, n, request);
      },
    });
    let token: string | Promise<string> = "s3cret";
    const hooks = { attempt: (e: object) => told.push(e), call: (e: object) => told.push(e) };
    const client = fleet.client("a", { token: () => token, hooks });
    await client.next();
    token = Promise.resolve("s3cret-2");
    await assert.rejects(client.next(), (e: NodeError) => e.code === "unauthenticated" && told.push(e) > 0);
    token = "";
    await client.next();
    token = "s3cret\r\nbroken";
    await assert.rejects(client.next({ timeout: 50 }), (e: Error) => told.push(e, e.message, e.stack) > 0);
    assert.deepEqual(seen, ["Bearer s3cret", "Bearer s3cret-2", null]);
    await sleep(0);
    for (const event of told) assert.ok(!JSON.stringify(event).includes("s3cret") && !String(event).includes("s3cret"));
    assert.match(String(told), /the token has characters that no header can have/);
  }));

test("the codes are those of the documentation", async () => {
  const page = await readFile(new URL("../../../docs/errors.md", import.meta.url), "utf8");
  const documented = new Map<string, string>();
  for (const [, code = "", status = ""] of page.matchAll(/^\| `(\w+)` \| (\d+) \|/gm)) documented.set(code, status);
  const known = Object.entries(codes).flatMap(([status, list]) => list.map((code) => [code, status] as const));
  assert.deepEqual(new Map([...known].sort()), new Map([...documented].sort()));
});

test("the licence is the repository's", async () => {
  const [ours, theirs] = await Promise.all(
    ["../LICENSE", "../../../LICENSE"].map((path) => readFile(new URL(path, import.meta.url), "utf8")),
  );
  assert.equal(ours, theirs);
});

test("64 callers of a real server keep their connections, and Node prints no warning", async (test) => {
  let last = 0n;
  let connections = 0;
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  const server = createServer((request, response) => {
    assert.equal(request.method, "POST");
    const id = Buffer.alloc(8);
    id.writeBigInt64BE(++last);
    response.setHeader("content-type", "application/octet-stream").end(id);
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  test.after(() => (server.close(), server.closeAllConnections()));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new Client([url], { timeout: 300_000 }); // the machine may be busy
  const ids = new Set<bigint>();
  const caller = async () => {
    for (let i = 0; i < 20; i++) ids.add(await client.next());
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  await client.close();
  assert.equal(ids.size, 64 * 20);
  assert.ok(connections <= Number(last) / 2, `${connections} connections for ${last} requests`);
  assert.deepEqual(warnings, []);
});
