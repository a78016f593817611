import assert from "node:assert/strict";
import { test } from "node:test";
import { type Hooks, NoAnswerError, NodeError } from "../dist/index.js";
import { type Behaviour, Fleet, gives, hangs, refuses, rejection, resets, simulate, sleep, suspend } from "./simulation.js";

const minute = 60_000;

function ascends(ids: bigint[]): boolean {
  return ids.every((id, i) => id > (ids[i - 1] ?? 0n));
}

test("one request serves many calls, and the next one is on its way before the IDs run out", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(10) });
    const client = fleet.client("a", { prefetch: { count: 100, maxAge: minute } });
    await client.next();
    let waited = 0;
    let last = 0n;
    for (let i = 0; i < 1000; i++) {
      if (i % 50 === 25) await sleep(20);
      const began = performance.now();
      const id = await client.next();
      waited += performance.now() - began;
      assert.ok(id > last);
      last = id;
    }
    assert.equal(waited, 0);
    assert.ok(fleet.requests("a") >= 10 && fleet.requests("a") <= 25, `${fleet.requests("a")}`);
  }));

for (const [after, expired] of [
  [970, 0],
  [971, 99],
  [1000, 99],
] as const) {
  test(`IDs are at most as old as they may be: ${after} ms after their answer`, () =>
    simulate(async () => {
      let dropped = 0;
      const fleet = new Fleet({ a: gives(30) });
      const hooks: Hooks = { batch: (b) => (dropped += b.expired) };
      const client = fleet.client("a", { prefetch: { count: 99, maxAge: 1000 }, hooks });
      await client.next();
      await sleep(after);
      const id = await client.next();
      assert.ok(performance.now() - fleet.sent.get(id)! <= 1000);
      assert.equal(dropped, expired);
    }));
}

for (const [time, dropped] of [
  [900, 0],
  [-3_600_000, 0], // the wall clock is set back
  [1001, 99],
] as const) {
  test(`IDs of before the machine slept are too old: ${time} ms`, () =>
    simulate(async () => {
      let expired = 0;
      const fleet = new Fleet({ a: gives(30) });
      const hooks: Hooks = { batch: (b) => (expired += b.expired) };
      const client = fleet.client("a", { prefetch: { count: 99, maxAge: 1000 }, hooks });
      await client.next();
      suspend(time);
      await client.next();
      assert.equal(expired, dropped);
    }));
}

test("a call that takes some from memory and some from a later answer has none that is too old", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(30), b: gives(70) });
    const ages: number[] = [];
    const hooks: Hooks = { call: (c) => ages.push(c.age) };
    const client = fleet.client("a b", { prefetch: { count: 100, maxAge: 1000 }, hooks });
    for (let i = 0; i < 500; i++) {
      const ids = await client.take(1 + ((i * 7) % 100));
      assert.ok(ascends(ids));
      const oldest = Math.max(...ids.map((id) => performance.now() - fleet.sent.get(id)!));
      assert.ok(oldest <= 1000);
      assert.equal(ages[i], oldest);
      await sleep((i % 40) * 10);
    }
  }));

test("when answers take longer than IDs may be old, calls get none", () =>
  simulate(async () => {
    const client = new Fleet({ a: gives(100) }).client("a", { prefetch: { count: 10, maxAge: 99 } });
    await assert.rejects(client.next(), NoAnswerError);
  }));

test("any number of callers share a request, and each has IDs of its own", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(50) });
    const client = fleet.client("a", { prefetch: { count: 1000, maxAge: minute } });
    const given = await Promise.all(Array.from({ length: 64 }, (_, i) => client.take(1 + (i % 3))));
    assert.equal(new Set(given.flat()).size, given.flat().length);
    assert.ok(fleet.requests("a") <= 2);
  }));

test("callers that run against expiry, slow nodes and each other get each ID once, none too old", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1), b: gives(5), c: resets });
    let expired = 0;
    const hooks: Hooks = { batch: (b) => (expired += b.expired) };
    const client = fleet.client("a b c", { prefetch: { count: 50, maxAge: 50 }, hooks });
    const given: bigint[] = [];
    const caller = async (_: unknown, i: number) => {
      for (let k = 0; k < 100; k++) {
        for (const id of await client.take(1 + (i % 4))) {
          assert.ok(performance.now() - fleet.sent.get(id)! <= 50);
          given.push(id);
        }
        await sleep(i * i);
      }
    };
    await Promise.all(Array.from({ length: 20 }, caller));
    assert.equal(new Set(given).size, given.length);
    assert.ok(expired > 0, "none was dropped: the test shows nothing");
  }));

test("an error for the caller goes to those who wait, and not to who comes later", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: refuses(404, "unknown_sequencer") });
    const client = fleet.client("a", { prefetch: { count: 10, maxAge: minute } });
    const errors = await Promise.all([rejection<NodeError>(client.next()), rejection<NodeError>(client.take(2))]);
    assert.deepEqual(
      errors.map((e) => e.code),
      ["unknown_sequencer", "unknown_sequencer"],
    );
    fleet.nodes["a"] = gives(1);
    await client.next();
  }));

test("a refill that fails is seen by nobody as long as there are IDs, and is not tried all the time", () =>
  simulate(async () => {
    let failed = 0;
    const fleet = new Fleet({ a: gives(1) });
    const hooks: Hooks = { batch: (b) => (failed += b.error ? 1 : 0) };
    const client = fleet.client("a", { prefetch: { count: 100, maxAge: minute }, hooks });
    for (let i = 0; i < 40; i++) await client.next();
    fleet.nodes["a"] = refuses(429, "rate_limited", { "retry-after": "5" });
    for (let i = 0; i < 61; i++) {
      await client.next();
      await sleep(0);
    }
    assert.equal(failed, 1);
    await assert.rejects(client.next(), (e: NodeError) => e.status === 429);
  }));

test("who waits for a fetch waits no longer than its own call; the fetch goes on for the others", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(100) });
    const client = fleet.client("a", { prefetch: { count: 10, maxAge: minute } });
    const [error] = await Promise.all([rejection<Error>(client.next({ timeout: 50 })), client.next()]);
    assert.equal(error.message, "no node gave an ID: timeout after 50 ms; http://a: no answer");
    assert.ok(fleet.requests("a") <= 2);
  }));

test("a caller that wants little is not held up by one that wants much", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(1) });
    const client = fleet.client("a", { prefetch: { count: 10, maxAge: minute } });
    await client.next();
    fleet.nodes["a"] = hangs;
    await client.take(8); // 2 are left
    const began = performance.now();
    await Promise.all([assert.rejects(client.take(3, { timeout: 20 }), NoAnswerError), client.take(2)]);
    assert.equal(performance.now() - began, 20);
  }));

test("IDs of two nodes, whose clocks differ, are put in order", () =>
  simulate(async () => {
    const behind: Behaviour = (fleet, n, request) => {
      fleet.last -= 1n << 30n;
      return gives(1)(fleet, n, request);
    };
    const client = new Fleet({ a: behind }).client("a", { prefetch: { count: 10, maxAge: minute } });
    for (let i = 0; i < 20; i++) assert.ok(ascends(await client.take(7)));
  }));

test("a call for more than is kept in memory goes to a node", () =>
  simulate(async () => {
    const fleet = new Fleet({ a: gives(0) });
    await fleet.client("a", { prefetch: { count: 10, maxAge: minute } }).take(11);
    assert.equal(fleet.paths[0], "/api/v1/ids?count=11");
  }));
