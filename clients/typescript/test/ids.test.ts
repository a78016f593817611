import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Client, decode, encode, type Encoding, firstId, fromUuid, lastId, MAX_ID, parse, presets, toUuid } from "../dist/index.js";

interface Vectors {
  layouts: { name: string; epoch_ms: number; node_lowest: boolean }[];
  not_layouts: string[];
  decode: { layout: string; id: string; parts: Record<string, number>; uuid: string }[];
  not_decoded: { layout: string; id: string }[];
  ids: Record<Encoding, string>[];
  not_ids: { form: Encoding; text: string }[];
  tagged: { sequencer: string; id: string; uuid: string }[];
  not_uuids: { layout: string; uuid: string }[];
  spans: { layout: string; time: string; first: string; last: string }[];
  not_spans: { layout: string; time: string }[];
}

const vectors = JSON.parse(
  await readFile(new URL("../../conformance/vectors.json", import.meta.url), "utf8"),
) as Vectors;

test("every encoding writes and reads the IDs of the vectors", () => {
  for (const texts of vectors.ids) {
    for (const [form, text] of Object.entries(texts) as [Encoding, string][]) {
      assert.equal(encode(BigInt(texts.decimal), form), text);
      assert.equal(parse(text, form), BigInt(texts.decimal));
    }
  }
  assert.ok(vectors.ids.length > 10);
  for (const id of [-1n, MAX_ID + 1n]) assert.throws(() => encode(id, "hex"), RangeError);
});

test("what is not the text of an ID is refused", () => {
  for (const { form, text } of vectors.not_ids) assert.throws(() => parse(text, form), SyntaxError, `${form} ${text}`);
  assert.throws(() => parse("1".repeat(1000), "hex"), /is not a hex ID; want 0000000000000000 to 7fffffffffffffff/);
  for (const text of ["1-94", "2-95", "65-00", "32-99", "117465411174400050-32"]) {
    assert.throws(() => parse(text, "checked"), new RegExp(`"${text}" is not a checked ID; want the text as it was made: wrong check digits`));
  }
  for (const text of ["195", "1-9", "1-095", "1-95-95", "01-95", "9223372036854775808-55", "9".repeat(1000) + "-95"]) {
    assert.throws(() => parse(text, "checked"), /is not a checked ID; want 0-98 to 9223372036854775807-58/, text);
  }
});

test("IDs are decoded as the vectors say, by presets and by bits", () => {
  for (const { layout, id, parts } of vectors.decode) {
    const { time, tick, datacenter, node, nodeId, sequence } = decode(BigInt(id), layout);
    const decoded = { unix_ms: time.getTime(), tick: Number(tick), datacenter, node, node_id: nodeId, sequence };
    assert.deepEqual(decoded, parts, `${layout} ${id}`);
  }
  assert.ok(vectors.decode.length > 50);
});

test("what a layout can't have made is refused, and what is no layout", () => {
  for (const { layout, id } of vectors.not_decoded) assert.throws(() => decode(BigInt(id), layout), RangeError);
  for (const layout of vectors.not_layouts) assert.throws(() => decode(1n, layout), RangeError, layout);
  for (const layout of ["toString", "__proto__", "1/54/8", "41/10/12@1.5ms"]) {
    assert.throws(() => decode(1n, layout), RangeError, layout);
  }
  assert.throws(() => decode(-1n), RangeError);
});

test("a time has the first and the last ID of its tick", () => {
  for (const { layout, time, first, last } of vectors.spans) {
    assert.equal(firstId(new Date(time), layout), BigInt(first), `${layout} ${time}`);
    assert.equal(lastId(new Date(time), layout), BigInt(last), `${layout} ${time}`);
  }
  assert.ok(vectors.spans.length > 50);
  const outside = { name: "RangeError", message: /is outside the layout's lifetime; want a time from .*Z on, before .*Z$/ };
  for (const { layout, time } of vectors.not_spans) {
    for (const of of [firstId, lastId]) assert.throws(() => of(new Date(time), layout), outside, `${layout} ${time}`);
  }
  assert.throws(() => firstId(new Date("2025-12-31T23:59:59.999Z")), {
    message:
      "2025-12-31T23:59:59.999Z is outside the layout's lifetime; want a time from 2026-01-01T00:00:00.000Z on, " +
      "before 2095-09-07T15:47:35.552Z",
  });
  assert.throws(() => firstId(new Date("yesterday")), /^TypeError: the time is Invalid Date; want a valid Date$/);
  assert.throws(() => firstId(new Date(0), "62/0/1"), /before .275760-09-13T00:00:00.000Z$/); // the last Date
  assert.throws(() => lastId(new Date(), { ...presets["default"]!, scattered: true }), /^RangeError: scattered IDs/);
  assert.throws(() => firstId(new Date(), "41/10"), /^RangeError: the layout is 41.10; want/);
});

test("the presets are all there is, with their epochs", () => {
  const named = vectors.layouts.filter(({ name }) => !name.includes("/"));
  assert.deepEqual(Object.keys(presets).sort(), named.map(({ name }) => name).sort());
  for (const { name, epoch_ms, node_lowest } of named) {
    assert.equal(presets[name]?.epoch.getTime(), epoch_ms);
    assert.equal(presets[name]?.nodeLowest ?? false, node_lowest);
  }
});

test("a layout of one's own", () => {
  const layout = { bits: "39/16/8@10ms", epoch: new Date("2020-01-01"), nodeLowest: true };
  const { time, node, sequence } = decode((5n << 24n) | (3n << 16n) | 2n, layout);
  assert.deepEqual([time.toISOString(), node, sequence], ["2020-01-01T00:00:00.050Z", 2, 3]);
});

test("scattered IDs are gathered", () => {
  const { tick, node, sequence } = decode(9093218702439795680n, { ...presets["default"]!, scattered: true });
  assert.deepEqual([tick, node, sequence], [1n, 5, 7]); // firn.Scatter(1<<22 | 5<<12 | 7)
});

test("UUIDs are written and read as the vectors say", () => {
  for (const { layout, id, uuid } of vectors.decode) {
    assert.equal(toUuid(BigInt(id), layout), uuid);
    assert.equal(fromUuid(uuid, layout), BigInt(id));
    assert.equal(fromUuid(uuid.toUpperCase(), layout), BigInt(id));
  }
  for (const { sequencer, id, uuid } of vectors.tagged) {
    assert.equal(toUuid(BigInt(id), "default", sequencer), uuid);
    assert.equal(fromUuid(uuid), BigInt(id));
    assert.equal(fromUuid(uuid, "default", sequencer), BigInt(id));
    assert.throws(() => fromUuid(uuid, "default", "another"), /is not a UUID of an ID of this layout and the sequencer another$/);
  }
  for (const name of [null, 5] as unknown as string[]) {
    assert.throws(() => toUuid(1n, "default", name), { name: "TypeError", message: `the sequencer is ${name}; want its name` });
    assert.throws(() => fromUuid(toUuid(1n), "default", name), { name: "TypeError" });
  }
  for (const { layout, uuid } of vectors.not_uuids) assert.throws(() => fromUuid(uuid, layout), uuid);
  assert.throws(() => toUuid(MAX_ID, "62/0/1"), /want one before the year 10889/);
});

interface Whole {
  says: string;
  not_whole: string[];
  numbers: string[];
  uuids: { text: string; id: string }[];
  not_uuids: string[];
  converted: string[];
  not_converted: string[];
}

const whole = JSON.parse(await readFile(new URL("../../conformance/whole.json", import.meta.url), "utf8")) as Whole;

test("what was never whole is refused in the words of all clients", async () => {
  const client = new Client(["http://localhost:1"]);
  for (const text of whole.not_whole) {
    assert.throws(() => parse(text, "decimal"), { name: "SyntaxError", message: new RegExp(whole.says) });
  }
  const wrong = [...whole.numbers.map(Number), NaN, "5", true, null, undefined, {}];
  assert.ok(wrong.length > 10);
  for (const value of wrong) {
    const id = value as unknown as bigint;
    const said = typeof value === "number" ? `${value} is ${whole.says}` : `is of type ${typeof value}; want`;
    const error = { name: "TypeError", message: new RegExp(`${said} a bigint, such as 117465411174400005n`.replaceAll("+", ".")) };
    for (const use of [decode, toUuid, (id: bigint) => encode(id, "hex")]) assert.throws(() => use(id), error, `${value}`);
    if (value !== "5") await assert.rejects(client.convert(id, "hex"), error, `${value}`);
  }
});

test("what may be the text of an ID is converted as it is, and nothing is sent for other texts", async () => {
  const sent: string[] = [];
  const client = new Client(["http://a"], {
    fetch: (url) => {
      sent.push(decodeURIComponent(String(url).replace(/^.*\/ids\//, "").replace("?form=hex", "")));
      return Promise.resolve(Response.json({ text: "00" }));
    },
  });
  for (const text of whole.converted) assert.equal(await client.convert(text, "hex"), "00", text);
  for (const text of whole.not_converted) await assert.rejects(client.convert(text, "hex"), SyntaxError, text);
  for (const text of whole.not_whole.filter((text) => text.includes("."))) {
    await assert.rejects(client.convert(text, "hex"), { message: new RegExp(whole.says) }, text);
  }
  assert.deepEqual(sent, whole.converted);
});

test("the usual texts of UUIDs are read", () => {
  for (const { text, id } of whole.uuids) assert.equal(fromUuid(text), BigInt(id), text);
  for (const text of whole.not_uuids) assert.throws(() => fromUuid(text), SyntaxError, text);
});
