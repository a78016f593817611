import { checkWhole, MAX_ID } from "./encoding.js";

/** How the 63 bits of an ID are split. */
export interface Layout {
  /** Bits of time/node/sequence or time/datacenter/node/sequence, and the tick where it is not 1 ms: "39/16/8@10ms". */
  bits: string;
  epoch: Date; // the instant of tick 0
  nodeLowest?: boolean; // the node lies below the sequence
  scattered?: boolean; // the sequencer was created with `scattered`
}

/** The layouts that have a name. */
export const presets: Record<string, Layout> = {
  default: { bits: "41/10/12", epoch: new Date("2026-01-01") },
  twitter: { bits: "41/5/5/12", epoch: new Date("2010-11-04T01:42:54.657Z") },
  discord: { bits: "41/5/5/12", epoch: new Date("2015-01-01") },
  instagram: { bits: "40/13/10", epoch: new Date("2011-08-24T21:07:01.721Z") },
  sonyflake: { bits: "39/16/8@10ms", epoch: new Date("2014-09-01"), nodeLowest: true },
  snowcast: { bits: "40/13/10", epoch: new Date("2014-01-01") },
  javascript: { bits: "41/5/7", epoch: new Date("2026-01-01") },
};

/** The fields of an ID. `nodeId` is datacenter and node as one number. */
export type Parts = { time: Date; tick: bigint; datacenter: number; node: number; nodeId: number; sequence: number };

/** Reads a layout: the bits of each field and of all, and the step of a tick in nanoseconds. */
function read(layout: Layout | string) {
  const given =
    typeof layout === "string" ? { epoch: presets["default"]!.epoch, bits: layout, ...presets[layout] } : layout;
  const { bits } = given;
  const fields = /^(\d\d?)(?:\/(\d\d?))?\/(\d\d?)\/(\d\d?)(?:@(\d{1,9})(ns|us|ms|s))?$/.exec(bits)?.slice(1) ?? [];
  const [time = 0, datacenter = 0, node = 0, sequence = 0] = fields.slice(0, 4).map((field) => Number(field ?? 0));
  const step = BigInt(fields[4] ?? 1) * { ns: 1n, us: 1000n, ms: 1_000_000n, s: 1_000_000_000n }[fields[5] ?? "ms"]!;
  const all = time + datacenter + node + sequence;
  if (time < 1 || all > 63 || all - time > 53 || step < 1n || step > 1_000_000_000n) {
    throw new RangeError(
      `the layout is ${bits}; want a preset, or up to 63 bits, as 41/10/12, 41/5/5/12 or 39/16/8@10ms`,
    );
  }
  return { ...given, time, datacenter, node, sequence, step, all };
}

/**
 * Splits an ID into its fields. A text is a preset's name, or bits with the epoch of the default. Throws
 * RangeErrors, and a TypeError for a number, which does not hold an ID.
 */
export function decode(id: bigint, layout: Layout | string = "default"): Parts {
  checkWhole(id);
  const { bits, epoch, nodeLowest, scattered, time, datacenter, node, sequence, step, all } = read(layout);
  const plain = scattered ? gather(id) : id;
  const most = 2n ** BigInt(all) - 1n;
  if (plain < 0n || plain > most) throw new RangeError(`${id} is not an ID of the layout ${bits}; want 0 to ${most}`);
  const field = (shift: number, width: number) => BigInt.asUintN(width, plain >> BigInt(shift));
  const tick = field(all - time, time);
  const nodeId = Number(field(nodeLowest ? 0 : sequence, datacenter + node));
  return {
    time: new Date(epoch.getTime() + Number((tick * step) / 1_000_000n)),
    tick,
    datacenter: Math.floor(nodeId / 2 ** node),
    node: nodeId % 2 ** node,
    nodeId,
    sequence: Number(field(nodeLowest ? datacenter + node : 0, sequence)),
  };
}

/**
 * Returns the smallest ID that any node can make in the tick that holds a time, for queries of a range of time. Throws a
 * RangeError for a time that the layout has no IDs for, and for a layout that scatters its IDs, and a TypeError for what is no
 * valid Date.
 */
export function firstId(time: Date, layout: Layout | string = "default"): bigint {
  const { epoch, scattered, time: timeBits, step, all } = read(layout);
  if (scattered) throw new RangeError("scattered IDs do not lie in the order of their time; want another layout");
  const [begin, at] = [epoch.getTime(), time instanceof Date ? time.getTime() : NaN];
  if (Number.isNaN(at)) throw new TypeError(`the time is ${String(time)}; want a valid Date`);
  const end = begin + Number((step << BigInt(timeBits)) / 1_000_000n);
  const tick = at >= begin ? (BigInt(at - begin) * 1_000_000n) / step : -1n;
  if (tick < 0n || tick >> BigInt(timeBits)) {
    const text = (ms: number) => new Date(Math.min(ms, 8.64e15)).toISOString();
    throw new RangeError(
      `${text(at)} is outside the layout's lifetime; want a time from ${text(begin)} on, before ${text(end)}`,
    );
  }
  return tick << BigInt(all - timeBits);
}

/** Returns the greatest ID that any node can make in the tick that holds a time. Throws as `firstId`. */
export function lastId(time: Date, layout: Layout | string = "default"): bigint {
  const { all, time: timeBits } = read(layout);
  return firstId(time, layout) | (2n ** BigInt(all - timeBits) - 1n);
}

/** Undoes what a sequencer with `scattered` does to its IDs; firn's scatter.go explains it. */
function gather(id: bigint): bigint {
  const step = (x: bigint) => ((x ^ (x >> 32n)) * 2812876173790338467n) & MAX_ID;
  const x = step(step(id));
  return x ^ (x >> 32n);
}

const lower = 2n ** 62n; // a UUID has 62 bits of the ID behind its variant

/** The tag of a sequencer's name in a UUID, in its place in the upper half; firn's uuid.go explains it. */
function tag(sequencer: string): bigint {
  if (typeof sequencer !== "string") throw new TypeError(`the sequencer is ${String(sequencer)}; want its name`);
  if (sequencer === "" || sequencer === "default") return 0n;
  let hash = 2166136261;
  for (const byte of new TextEncoder().encode(sequencer)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return BigInt(1 + (hash % 2047)) << 1n;
}

const tags = 2047n << 65n; // the bits of a UUID that hold one

/**
 * Writes an ID as a UUID of version 7, with its time and the tag of the sequencer that made it, as nodes do. Throws a
 * RangeError as `decode`, or from 10889 on.
 */
export function toUuid(id: bigint, layout: Layout | string = "default", sequencer = "default"): string {
  const time = decode(id, layout).time.getTime();
  if (!(time < 2 ** 48)) throw new RangeError(`${id} has no UUID; want one before the year 10889`);
  const upper = (BigInt(time) << 16n) | 0x7000n | tag(sequencer) | (id / lower);
  const hex = ((upper << 64n) | (2n * lower) | (id % lower)).toString(16).padStart(32, "0");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const digits = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const uuidText = new RegExp(`^(?:(?:urn:uuid:)?(${digits})|\\{(${digits})\\}|([0-9a-f]{32}))$`, "i");

/**
 * Reads the UUID of an ID; the text may be without hyphens, in braces, or behind urn:uuid:, and in either case. Throws a
 * SyntaxError for any other UUID: of another version, program or layout, or of another sequencer than one that is named.
 */
export function fromUuid(uuid: string, layout: Layout | string = "default", sequencer?: string): bigint {
  const hex = (uuidText.exec(uuid)?.slice(1).join("") ?? "").replaceAll("-", "").toLowerCase();
  const all = hex ? BigInt(`0x${hex}`) : 0n;
  const id = (((all >> 64n) & 1n) * lower) | (all % lower);
  const any = sequencer === undefined ? tags : 0n;
  if (all > 0n && BigInt(`0x${toUuid(id, layout, sequencer).replaceAll("-", "")}`) === (all & ~any)) return id;
  throw new SyntaxError(`${JSON.stringify(uuid.slice(0, 40))} is not a UUID of an ID of this layout${sequencer === undefined ? "" : ` and the sequencer ${sequencer}`}`);
}
