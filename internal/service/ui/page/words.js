// Text for numbers, times and entries of the log.

const grouped = new Intl.NumberFormat("en", { useGrouping: true, maximumFractionDigits: 0 });

// number groups digits by narrow spaces.
export const number = (n) => grouped.format(n).replaceAll(",", "\u202f");

export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

// short is the first part of a member's ID, enough to recognise it.
export const short = (id) => (id.length > 8 ? id.slice(0, 6) : id);

// names are those of nodes by their member IDs, as far as the cluster remembers them.
export const names = new Map();

// who names a member for people.
export const who = (id) => (names.has(id) ? `${names.get(id)} (${short(id)})` : short(id));

// Members have one of twelve colours, which differ in hue and neighbours in lightness too. The one that a member begins with
// follows from its ID; if an older one has that, it takes the next. So they are the same on every page, and the twelve oldest
// have one each.
const palette = Array.from({ length: 12 }, (_, i) => {
  const [hue, shade] = [20 + 30 * i, (i % 3) * 0.13];
  return `light-dark(oklch(${(0.38 + shade).toFixed(2)} 0.14 ${hue}), oklch(${(0.6 + shade).toFixed(2)} 0.13 ${hue}))`;
});
const own = new Map();
const colours = new Map();
export const colourOf = (id) => colours.get(id) ?? palette[first(id)];

// colourAll gives members their colours, the oldest first.
export function colourAll(ids) {
  colours.clear();
  for (const id of ids.slice(0, palette.length)) {
    let at = first(id);
    while ([...colours.values()].includes(palette[at])) at = (at + 5) % palette.length; // which comes to all, the farthest first
    colours.set(id, palette[at]);
  }
}

// first is the place in the palette that an ID begins at.
function first(id) {
  if (!own.has(id)) {
    let hash = 2166136261; // FNV-1a, and a last mix
    for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 16777619);
    if (own.size > 5000) own.clear();
    own.set(id, (Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0) % palette.length);
  }
  return own.get(id);
}

// rate is a short text for a number of IDs, or of IDs per second.
export function rate(n) {
  if (n >= 1e12) return `${(n / 1e12).toFixed(n >= 1e13 ? 0 : 1)} T`;
  if (n >= 1e9) return `${(n / 1e9).toFixed(n >= 1e10 ? 0 : 1)} G`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(n >= 1e7 ? 0 : 1)} M`;
  if (n >= 1e4) return `${(n / 1e3).toFixed(n >= 1e5 ? 0 : 1)} k`;
  return n >= 10 || Number.isInteger(n) ? number(n) : n.toFixed(1);
}

// bytes is a short text for a number of bytes.
export function bytes(n) {
  if (n >= 2 ** 30) return `${(n / 2 ** 30).toFixed(1)} GiB`;
  if (n >= 2 ** 20) return `${(n / 2 ** 20).toFixed(1)} MiB`;
  return `${number(Math.ceil(n / 2 ** 10))} KiB`;
}

// span is a text for a length of time.
export function span(ms) {
  const s = Math.abs(ms) / 1000;
  if (s < 1) return `${Math.round(Math.abs(ms))} ms`;
  if (s < 90) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  if (s < 86400 * 730) return `${number(s / 86400)} days`;
  return `${number(s / 86400 / 365.25)} years`;
}

// clock is a time of the day, of this machine's time zone, for a number of milliseconds or a text; with the day unless it
// is today's.
export function clock(at) {
  const time = new Date(at);
  return `${today(time) ? "" : `${days.format(time)} `}${times.format(time)}`;
}
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const times = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

// today tells whether a time is of this day.
export const today = (at) => new Date(at).setHours(0, 0, 0, 0) === new Date().setHours(0, 0, 0, 0);

// ago is how long ago a time was, roughly.
export const ago = (at) => span(Math.max(0, Date.now() - at));

// offset is a text for how far a clock is from the others'.
export const offset = (ms) => (Math.abs(ms) < 5 ? "agrees" : `${ms < 0 ? "−" : "+"}${span(ms)}`);

// stateOf is the state of a member or joiner: {kind, text, title, rank}, the worst first by rank. What is not confirmed now
// says since when.
export function stateOf(id, m, model) {
  const since = (at) => (at ? ` since ${clock(at)}` : "");
  if (model.past) return { kind: "", text: m.phase ? `join ${m.phase}` : "", rank: 5 };
  if (model.doubt !== null && !(model.lost === null && id === model.facts.member)) return { kind: "doubt", text: `not confirmed${since(model.doubt)}`, rank: 3 };
  if (m.state === "gone") return { kind: "bad", text: `gone${since(m.as_of)}`, title: `There is no pulse${since(m.as_of)}.`, rank: 0 };
  if (m.state === "late") return { kind: "doubt", text: `late${since(m.as_of)}`, title: `The pulse is overdue${m.as_of ? `; the last one was written at ${clock(m.as_of)}` : ""}.`, rank: 2 };
  if (m.state === "new") return { kind: "", text: "new", title: "It has come or left since the pulses were read.", rank: 4 };
  if (!m.fresh) return { kind: "doubt", text: "not known yet", rank: 3 };
  if (!["ready", "alive"].includes(m.state)) return { kind: "bad", text: m.state === "not_ready" ? "not ready" : `not ready: ${m.state}`, title: m.why, rank: 1 };
  if (m.phase) return { kind: "doubt", text: `join ${m.phase}`, rank: 4 };
  return { kind: "good", text: m.state, rank: 5 };
}

export const moment = (text) => text.replace("T", " ").replace("Z", " UTC");

function forWhom(allocation) {
  if (allocation?.kind === "count") return plural(allocation.count, "member", "members");
  if (allocation?.kind === "percent") return `${allocation.percent} % of the members`;
  return "all members";
}

// stretches writes rising numbers, such as 3, 5..7.
export function stretches(numbers) {
  const all = [];
  for (const n of numbers) {
    const last = all.at(-1);
    if (last && last[1] + 1 === n) last[1] = n;
    else all.push([n, n]);
  }
  return all.map(([from, to]) => (from === to ? `${from}` : `${from}..${to}`)).join(", ");
}

// reservationsOf are the node IDs of a sequencer that no member gets.
export const reservationsOf = (q) => q.rules?.reservations ?? q.reservations ?? [];

// whomOf is whom a sequencer is allocated to.
export const whomOf = (q) => forWhom(q.rules?.allocation ?? q.definition?.allocation);

// isCounter tells whether the IDs of a sequencer are the numbers 1, 2, 3 and so on: it has no node IDs and no layout.
export const isCounter = (q) => q?.definition?.kind === "counter";

// isClaimed tells whether members claim a sequencer's IDs, without node IDs.
export const isClaimed = (q) => isCounter(q) || q?.definition?.order === "strict";

// layoutOf is the layout of a sequencer's IDs: node bits that its capacity does not need go to the sequence.
export function layoutOf(q) {
  const d = q.definition;
  const strict = isClaimed(q);
  const spare = d.datacenter_bits + d.node_bits - (strict ? 0 : Math.round(Math.log2(q.capacity)));
  return {
    time: d.time_bits, datacenter: strict ? 0 : d.datacenter_bits, node: strict ? 0 : d.node_bits - spare, sequence: d.sequence_bits + spare,
    lowest: d.node_lowest, tick: d.tick, epoch: d.epoch, scattered: d.scattered === true,
  };
}

// bitsOf is how many bits an ID of a layout has. A number in JavaScript keeps 53.
const bitsOf = (l) => l.scattered ? 63 : l.time + l.datacenter + l.node + l.sequence;
export const inJavaScript = (l) => (bitsOf(l) > 53 ? `rounded: ${bitsOf(l)} bits, kept are 53` : "exact");

const say = {
  "prepare-join-cluster": (a) => [who(a.joiner), " asks to join"],
  "notify-watchers": (a) => [who(a.joiner), " watches its target; the target's watcher is to watch it"],
  "accept-join-cluster": (a) => [who(a.joiner), " is watched, and is now a member"],
  "abort-join-cluster": (a) => ["the join of ", who(a.joiner), " was aborted"],
  "leave-cluster": (a) => [who(a.member), { left: " left", "session-ended": ` is removed by ${who(a.by ?? "")}: its session ended`, "found-dead": ` is removed by ${who(a.by ?? "")}, which found it dead` }[a.why] ?? " is removed: it left or died"],
  expel: (a) => [who(a.member), ` is expelled by way of ${who(a.by)}`],
  "ask-clocks": (a) => [who(a.by), " asks what the clocks of others say"],
  "peer-gc": (a) => [who(a.by), " looks for dead members"],
  "create-sequencer": (a) => [a.sequencer, isClaimed({ definition: a.definition }) ? ` is created: ${a.definition.kind === "counter" ? "a counter" : "in strict order"}` : ` is created: ${plural(a.definition.nodes, "node", "nodes")}, for ${forWhom(a.definition.allocation)}`, ...(a.reserve ?? []).map((r) => `; ${ofReserving(r)} for ${r.for}`)],
  "destroy-sequencer": (a) => [a.sequencer, " is destroyed"],
  attach: (a) => [who(a.member), ` requests a node ID of ${a.sequencer}`, a.from === undefined ? "" : ` from ${a.from} to ${a.to}`],
  detach: (a) => [who(a.member), ` detaches from ${a.sequencer}`],
  drain: (a) => [who(a.member), ` is drained from ${a.sequencer}`],
  undrain: (a) => [who(a.member), ` may hold node IDs of ${a.sequencer} again`],
  move: (a) => [`node ID ${a.node} of ${a.sequencer} is to move to `, who(a.to)],
  allocate: (a) => [a.sequencer, ` is allocated to ${forWhom(a.allocation)}`],
  reserve: (a) => [`${a.sequencer} reserves ${ofReserving(a)} for ${a.for}`],
  release: (a) => [`${a.sequencer} gets back what was reserved for ${a.for}`],
  "set-policy": (a) => [a.shares.length ? `the cluster is shared: ${a.shares.map((s) => `${s.percent ? `${s.percent} %` : "the rest"} for ${s.sequencer}`).join(", ")}` : "the policy is removed"],
  decline: (a) => [who(a.member), ` can't use node ID ${a.node} of ${a.sequencer} and requests another`],
};

const ofReserving = (r) => (r.nodes ? `node IDs ${stretches(r.nodes)}` : plural(r.count, "node ID", "node IDs"));

// entryText describes an entry of the log.
export function entryText(entry) {
  if (entry.unreadable) return `unreadable entry: ${entry.unreadable}`;
  return (say[entry.command] ?? (() => [entry.command]))(entry.args).join("") + (entry.who ? `, by ${entry.who}` : "");
}

// kindOf groups the commands for the signs in the log.
export function kindOf(entry) {
  switch (entry.command) {
    case "accept-join-cluster":
    case "create-sequencer":
      return "comes";
    case "leave-cluster":
    case "abort-join-cluster":
    case "destroy-sequencer":
    case "expel":
      return "goes";
    case "attach":
    case "detach":
    case "decline":
    case "drain":
    case "undrain":
    case "move":
      return "nodes";
    default:
      return "other";
  }
}
