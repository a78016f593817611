"use strict";

// Takes IDs as programs in JavaScript do, each way of docs/reference.md in turn, and prints them: a line for each, with the
// way, a tab and the ID as JavaScript has it. The argument is JSON: the nodes, each with its HTTP and Redis addresses.

const { Redis } = require("ioredis");
const { createClient, RESP_TYPES } = require("redis");

const count = 5000;
const atOnce = 50;
const nodes = JSON.parse(process.argv[2]);

// each calls take, count times, and prints the ID that each call comes to.
async function each(way, take) {
  for (let taken = 0; taken < count; taken += atOnce) print(way, await Promise.all(Array.from({ length: atOnce }, take)));
}

// batches is each for calls that come to many IDs.
async function batches(way, take) {
  for (let taken = 0; taken < count; taken += 1000) print(way, await take(1000));
}

const print = (way, ids) => process.stdout.write(ids.map((id) => `${way}\t${id}\n`).join(""));

async function answer(url, accept) {
  const response = await fetch(url, { method: "POST", headers: accept ? { Accept: accept } : {} });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response;
}

const json = async (url, accept) => (await answer(url, accept)).json();

async function packed(url) {
  const view = new DataView(await (await answer(url, "application/octet-stream")).arrayBuffer());
  return Array.from({ length: view.byteLength / 8 }, (_, i) => view.getBigUint64(8 * i));
}

async function overHTTP() {
  const api = `${nodes.plain.http}/api/v1`;
  const strings = "application/json;ids=string";
  await each("fetch ?ids=string", async () => (await json(`${api}/id?ids=string`)).id);
  await batches("fetch count and ids=string", async (n) => (await json(`${api}/ids?count=${n}&ids=string`)).ids);
  await each("fetch Accept strings", async () => (await json(`${api}/id`, strings)).id);
  await batches("fetch many, Accept strings", async (n) => (await json(`${api}/ids?count=${n}`, strings)).ids);
  await each("fetch id_str", async () => (await json(`${api}/id`)).id_str);
  await batches("fetch ids_str", async (n) => (await json(`${api}/ids?count=${n}`)).ids_str);
  await batches("fetch packed", (n) => packed(`${api}/ids?count=${n}`));
  await each("rounded: fetch id", async () => (await json(`${api}/id`)).id);
  await batches("rounded: fetch ids", async (n) => (await json(`${api}/ids?count=${n}`)).ids);

  const texts = `${nodes.texts.http}/api/v1`;
  await each("--json-ids string, fetch id", async () => (await json(`${texts}/id`)).id);
  await batches("--json-ids string, fetch ids", async (n) => (await json(`${texts}/ids?count=${n}`)).ids);
  await each("--compat leaf, fetch", async () => (await fetch(`${nodes.texts.http}/api/snowflake/get/default`)).text());

  const exact = `${nodes.javascript.http}/api/v1`;
  await each("--layout javascript, fetch id", async () => (await json(`${exact}/id`)).id);
  await batches("--layout javascript, fetch ids", async (n) => (await json(`${exact}/ids?count=${n}`)).ids);
}

async function byIoredis() {
  const [host, port] = nodes.plain.redis.split(":");
  const redis = new Redis({ host, port });
  await each("ioredis FIRN.ID", () => redis.call("FIRN.ID", "default"));
  await batches("ioredis FIRN.IDS", (n) => redis.call("FIRN.IDS", "default", n));
  await each("rounded: ioredis INCR", () => redis.incr("default"));
  redis.disconnect();

  const strings = new Redis({ host, port, stringNumbers: true });
  await each("ioredis INCR, stringNumbers", () => strings.incr("default"));
  strings.disconnect();

  const exact = new Redis(...nodes.javascript.redis.split(":").reverse());
  await each("--layout javascript, ioredis INCR", () => exact.incr("default"));
  exact.disconnect();
}

async function byNodeRedis() {
  const redis = await createClient({ url: `redis://${nodes.plain.redis}` }).connect();
  await each("node-redis FIRN.ID", () => redis.sendCommand(["FIRN.ID", "default"]));
  await batches("node-redis FIRN.IDS", (n) => redis.sendCommand(["FIRN.IDS", "default", String(n)]));
  await each("rounded: node-redis INCR", () => redis.incr("default"));
  const strings = redis.withTypeMapping({ [RESP_TYPES.NUMBER]: String });
  await each("node-redis INCR, numbers as strings", () => strings.incr("default"));
  redis.destroy();

  const exact = await createClient({ url: `redis://${nodes.javascript.redis}` }).connect();
  await each("--layout javascript, node-redis INCR", () => exact.incr("default"));
  exact.destroy();
}

(async () => {
  await overHTTP();
  await byIoredis();
  await byNodeRedis();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
