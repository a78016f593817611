import assert from "node:assert/strict";
import { test } from "node:test";
import { type Hooks, NoAnswerError, NodeError } from "../dist/index.js";
import { type Behaviour, Fleet, gives, hangs, packed, refuses, rejection, resets, says, simulate, sleep } from "./simulation.js";

type AttemptEvent = Parameters<NonNullable<Hooks["attempt"]>>[0];
type CallEvent = Parameters<NonNullable<Hooks["call"]>>[0];

const octets = { "content-type": "application/octet-stream" };

for (const [name, bad, retried] of [
  ["refused or reset", resets, true],
  ["no answer", hangs, true],
  ["301", says(301, ""), true],
  ["400", refuses(400, "bad_request"), false],
  ["401", refuses(401, "unauthenticated"), false],
  ["401 of a proxy", says(401, "<html>"), false],
  ["403", refuses(403, "forbidden"), false],
  ["404", refuses(404, "unknown_sequencer"), false],
  ["404 of what is no firn node", says(404, "<html>"), true],
  ["405", refuses(405, "method_not_allowed"), false],
  ["408", says(408, ""), true],
  ["409", refuses(409, "exists"), false],
  ["409 of a counter at its end", refuses(409, "exhausted"), false],
  ["409 of a counter after a loss", refuses(409, "lost"), false],
  ["413", refuses(413, "too_large"), false],
  ["429", refuses(429, "rate_limited", { "retry-after": "1" }), false],
  ["500", refuses(500, "internal"), true],
  ["502 of a proxy", says(502, "<html>"), true],
  ["503 not_ready", refuses(503, "not_ready", { "retry-after": "1" }), true],
  ["503 waiting", refuses(503, "waiting"), true],
  ["503 overloaded", refuses(503, "overloaded"), true],
  ["503 lifetime", refuses(503, "lifetime"), false],
  ["503 with another code", refuses(503, "draining"), true],
  ["503 without a code", says(503, ""), true],
  ["an error whose code is no text", says(503, `{"error":{"code":{},"message":[]}}`), true],
  ["an error that is null", says(503, "null"), true],
  ["200 that is no IDs", says(200, "<html>"), true],
  ["JSON", says(200, `{"id":1,"id_str":"1"}`, { "content-type": "application/json" }), true],
  ["too few bytes", says(200, "\0\0\0\0\0\0\x01", octets), true],
  ["too many bytes", says(200, "\0\0\0\0\0\0\0\x01\x01", octets), true],
  ["nothing", says(200, "", octets), true],
  ["zero", async () => packed([0n]), true],
  ["negative", async () => packed([-1n]), true],
  ["204", says(204, null), true],
] as const) {
  test(`what is retried: ${name}`, () =>
    simulate(async () => {
      const fleet = new Fleet({ bad, good: gives(1) });
      const call = fleet.client("good bad").next();
      if (retried) {
        await call;
        assert.equal(fleet.requests("good"), 1);
      } else {
        await assert.rejects(call, (e) => e instanceof NodeError && e.node === "http://bad");
        assert.equal(fleet.requests("good"), 0);
      }
      assert.equal(fleet.requests("bad"), 1);
    }));
}

test("the error says what the node says", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: refuses(429, "rate_limited", { "retry-after": "7" }) });
    const error = await rejection<NodeError>(fleet.client("a").next());
    const { name, message, node, status, code, retryAfter } = error;
    assert.deepEqual(
      { name, message, node, status, code, retryAfter },
      {
        name: "NodeError",
        message: "http://a answers 429: rate_limited: so it is",
        node: "http://a",
        status: 429,
        code: "rate_limited",
        retryAfter: 7000,
      },
    );
  }));

test("when the time is over the error says of each node what was wrong", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: resets, b: refuses(503, "not_ready", { "retry-after": "1" }), c: hangs });
    const began = performance.now();
    const error = await rejection<NoAnswerError>(fleet.client("a b c").next());
    assert.equal(performance.now() - began, 1000);
    assert.ok(error instanceof NoAnswerError);
    assert.equal((error.cause as DOMException).name, "TimeoutError");
    assert.ok(error.errors[1] instanceof NodeError);
    assert.equal(
      error.message,
      "no node gave an ID: timeout after 1000 ms; http://c: no answer; " +
        "http://b answers 503: not_ready: so it is; http://a: fetch failed: connection reset",
    );
    for (const node of ["a", "b"])
      assert.ok(fleet.requests(node) >= 3 && fleet.requests(node) <= 12, `${fleet.requests(node)}`);
    assert.equal(fleet.requests("c"), 2);
  }));

test("the only node is restarted", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: resets });
    setTimeout(() => (fleet.nodes["a"] = gives(1)), 500);
    await fleet.client("a").next();
  }));

test("a call ends after 10 s unless told otherwise, and with its signal", () =>
  simulate(async () => {
    const client = new Fleet({ a: hangs }).client("a", { timeout: undefined as unknown as number });
    const began = performance.now();
    await assert.rejects(client.next(), NoAnswerError);
    assert.equal(performance.now() - began, 10_000);
    await assert.rejects(client.next({ timeout: 20_000 }), NoAnswerError);
    assert.equal(performance.now() - began, 30_000);
    const abort = new AbortController();
    setTimeout(() => abort.abort("enough"), 100);
    await assert.rejects(client.next({ signal: abort.signal }), (e: NoAnswerError) => e.cause === "enough");
    assert.equal(performance.now() - began, 30_100);
  }));

test("a call with an aborted signal asks nobody", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(0) });
    for (const prefetch of [undefined, { count: 10, maxAge: 1000 }]) {
      const client = fleet.client("a", prefetch && { prefetch });
      await assert.rejects(client.next({ signal: AbortSignal.abort() }), NoAnswerError);
      assert.equal(fleet.requests("a"), 0);
    }
  }));

test("a limit that the client's own second request hits does not make the call fail", () =>
  simulate(async () => {
    const fleet = new Fleet({ slow: gives(500), strict: refuses(429, "rate_limited") });
    await fleet.client("strict slow").next();
    assert.equal(fleet.requests("strict"), 1);
  }));

test("when the request beside it fails, the limit is the call's error", () =>
  simulate(async () => {
    const fails = async () => (await sleep(500), new Response("", { status: 500 }));
    const fleet = new Fleet({ slow: fails, strict: refuses(429, "rate_limited") });
    await assert.rejects(fleet.client("strict slow").next(), (e: NodeError) => e.status === 429);
  }));

test("a stopped node costs one call the patience, and the next ones nothing", () =>
  simulate(async () => {
    let calls: CallEvent[] = [];
    const fleet = new Fleet({ a: gives(1), b: gives(1) });
    const client = fleet.client("a b", { hooks: { call: (c) => calls.push(c) } });
    for (let i = 0; i < 100; i++) await client.next();
    assert.deepEqual([fleet.requests("a"), fleet.requests("b")], [50, 50]);
    fleet.nodes["b"] = hangs;
    calls = [];
    for (let i = 0; i < 1000; i++) await client.next();
    calls.forEach((call, i) => assert.ok(call.duration <= (i === 0 ? 12 : 1), `call ${i} took ${call.duration}`));
    const probes = fleet.requests("b") - 50;
    assert.ok(probes >= 3 && probes <= 6, `${probes}`);
    fleet.nodes["b"] = gives(1);
    await sleep(5000);
    await client.next();
    await sleep(1);
    const before = fleet.requests("b");
    for (let i = 0; i < 10; i++) await client.next();
    assert.equal(fleet.requests("b") - before, 5);
  }));

test("a slow node is avoided, though it gives IDs in the end", () =>
  simulate(async () => {
    const attempts: AttemptEvent[] = [];
    const fleet = new Fleet({ a: gives(1), b: gives(200) });
    const client = fleet.client("a b", { hooks: { attempt: (a) => attempts.push(a) } });
    for (let i = 0; i < 1000; i++) {
      await client.next();
      await sleep(19);
    }
    assert.ok(fleet.requests("b") >= 5 && fleet.requests("b") <= 15, `${fleet.requests("b")}`);
    assert.ok(attempts.filter((a) => a.duration === 200).length >= 5);
    assert.equal(attempts.filter((a) => a.error).length, 0);
    await client.close();
  }));

test("a slow first request goes on, and its answer counts if it comes first", () =>
  simulate(async () => {
    const attempts: AttemptEvent[] = [];
    const fleet = new Fleet({ a: hangs, b: gives(300) });
    const client = fleet.client("a b", { hooks: { attempt: (a) => attempts.push(a) } });
    const began = performance.now();
    await client.next();
    assert.equal(performance.now() - began, 300);
    await client.close();
    await sleep(0);
    const [first, second] = attempts;
    assert.deepEqual([first?.node, first?.hedged, first?.error], ["http://b", false, undefined]);
    assert.deepEqual([second?.node, second?.hedged], ["http://a", true]);
    assert.equal((second?.error?.cause as Error).name, "ClosedError");
    assert.equal(performance.now() - began, 300);
  }));

test("however little time there is, half of it is left for another node", () =>
  simulate(async () => {
    await new Fleet({ a: gives(1), b: hangs }).client("a b").next({ timeout: 30 });
  }));

test("while one node is silent, one that failed is asked again rather than the silent one", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: resets, b: hangs });
    setTimeout(() => (fleet.nodes["a"] = gives(1)), 106);
    await fleet.client("a b").next();
    assert.equal(fleet.requests("b"), 1);
  }));

test("a node that fails is asked less and less often, by requests that nobody waits for", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1), b: resets, c: gives(1) });
    let calls = 0;
    const client = fleet.client("a b c", { hooks: { call: () => calls++ } });
    const count = async (time: number) => {
      const before = fleet.requests("b");
      for (const end = performance.now() + time; performance.now() < end; await sleep(49)) await client.next();
      return fleet.requests("b") - before;
    };
    const first = await count(1000);
    assert.ok(first >= 3 && first <= 6, `${first} in the first second`);
    await count(20_000);
    const later = await count(60_000); // one every 2.5 to 5 s
    assert.ok(later >= 12 && later <= 24, `${later} a minute in the long run`);
    assert.equal(fleet.requests("a", "c"), calls);
    fleet.nodes["b"] = gives(1);
    await count(5000);
    const back = await count(1000);
    assert.ok(back >= 6, `it is back, and has ${back} of 20 requests`);
  }));

test("a node that says Retry-After is left alone for as long", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1), b: refuses(503, "not_ready", { "retry-after": "3" }) });
    const client = fleet.client("a b");
    for (const began = performance.now(); performance.now() < began + 3000;) await client.next();
    assert.equal(fleet.requests("b"), 1);
  }));

test("a node that closes its connections is about to stop", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1), b: gives(1, { connection: "close" }) });
    const client = fleet.client("a b");
    for (let i = 0; i < 500; i++) await client.next();
    assert.deepEqual([fleet.requests("a"), fleet.requests("b")], [499, 1]);
  }));

test("what is wrong with one sequencer on a node says nothing of another", () =>
  simulate(async () => {
    const fleet = new Fleet({
      a: gives(1),
      b: (f, n, request) =>
        (request.url.pathname.includes("/orders/") ? refuses(503, "waiting") : gives(1))(f, n, request),
    });
    const client = fleet.client("a b");
    await client.sequencer("orders").next();
    const before = fleet.requests("b");
    for (let i = 0; i < 10; i++) await client.next();
    assert.equal(fleet.requests("b") - before, 5);
  }));

test("when all nodes are slow, not every call is sent to all of them", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(400), b: gives(400), c: gives(400) });
    const client = fleet.client("a b c");
    for (let i = 0; i < 100; i++) await client.next();
    assert.ok(fleet.requests("a", "b", "c") <= 110, `${fleet.requests("a", "b", "c")}`);
  }));

test("the load is spread", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1), b: gives(1), c: gives(4) });
    const client = fleet.client("a b c");
    const caller = async () => {
      for (let i = 0; i < 50; i++) await client.next();
    };
    await Promise.all(Array.from({ length: 30 }, caller));
    const [a, b, slow] = [fleet.requests("a"), fleet.requests("b"), fleet.requests("c")];
    assert.ok(a >= 550 && b >= 550 && slow >= 100, `${a}, ${b}, ${slow}`);
  }));

test("a request goes on for a second after its call has ended", () =>
  simulate(async () => {
    const attempts: AttemptEvent[] = [];
    const client = new Fleet({ a: hangs }).client("a", { hooks: { attempt: (a) => attempts.push(a) } });
    await assert.rejects(client.next(), NoAnswerError);
    await sleep(999);
    assert.equal(attempts.length, 0);
    await sleep(1);
    assert.equal(attempts[0]?.duration, 2000);
    assert.equal((attempts[0]?.error?.cause as Error).name, "AbortError");
  }));

test("another node learns the greatest ID", () =>
  simulate(async () => {
    let told: string | null = null;
    const works: Behaviour = (fleet, n, request) => {
      told = request.headers.get("firn-after");
      return gives(0)(fleet, n, request);
    };
    const fleet = new Fleet({ a: works, b: works });
    const client = fleet.client("a b");
    let last = 0n;
    for (const [node, expected] of [["a", false], ["a", false], ["b", true], ["b", false], ["a", true]] as const) {
      Object.assign(fleet.nodes, { a: resets, b: resets }, { [node]: works });
      const id = await client.next();
      assert.equal(told, expected ? String(last) : null);
      assert.ok(id > last);
      last = id;
    }
    fleet.last = 1000n;
    await client.next();
    Object.assign(fleet.nodes, { a: resets, b: works });
    await client.next(); // a smaller ID does not count
    assert.equal(told, String(last));
    await client.sequencer("orders").next();
    assert.equal(told, null);
  }));
