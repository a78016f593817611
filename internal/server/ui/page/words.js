// Text for numbers, times and entries of the log.

const grouped = new Intl.NumberFormat("en", { useGrouping: true, maximumFractionDigits: 0 });

// number groups digits by narrow spaces.
export const number = (n) => grouped.format(n).replaceAll(",", "\u202f");

export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

// short is the first part of a member's ID, enough to recognise it.
export const short = (id) => (id.length > 8 ? id.slice(0, 6) : id);

// hostOf is the host in an owner such as "host, process 7".
export const hostOf = (owner) => (owner ?? "").split(", process ")[0];

// rate is a short text for a number of IDs per second.
export function rate(n) {
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

export const moment = (text) => text.replace("T", " ").replace("Z", " UTC");

function forWhom(allocation) {
  if (allocation?.kind === "count") return plural(allocation.count, "member", "members");
  if (allocation?.kind === "percent") return `${allocation.percent} % of the members`;
  return "all members";
}

// layoutOf is the layout of a sequencer's IDs: node bits that its capacity does not need go to the sequence.
export function layoutOf(q) {
  const d = q.definition;
  const spare = d.datacenter_bits + d.node_bits - Math.round(Math.log2(q.capacity));
  return {
    time: d.time_bits, datacenter: d.datacenter_bits, node: d.node_bits - spare, sequence: d.sequence_bits + spare,
    lowest: d.node_lowest, tick: d.tick, epoch: d.epoch, whom: forWhom(d.allocation), after: d.after,
  };
}

const say = {
  "prepare-join-cluster": (a) => [short(a.joiner), " asks to join"],
  "notify-watchers": (a) => [short(a.joiner), " watches its target; the target's watcher is to watch it"],
  "accept-join-cluster": (a) => [short(a.joiner), " is watched, and is now a member"],
  "abort-join-cluster": (a) => ["the join of ", short(a.joiner), " was aborted"],
  "leave-cluster": (a) => [short(a.member), " is removed: it left or died"],
  "peer-gc": (a) => [short(a.by), " looks for dead members"],
  "create-sequencer": (a) => [a.sequencer, ` is created: ${plural(a.definition.nodes, "node ID", "node IDs")} for ${forWhom(a.definition.allocation)}`],
  "destroy-sequencer": (a) => [a.sequencer, " is destroyed"],
  attach: (a) => [short(a.member), ` requests a node ID of ${a.sequencer}`, a.from === undefined ? "" : ` from ${a.from} to ${a.to}`],
  detach: (a) => [short(a.member), ` detaches from ${a.sequencer}`],
  decline: (a) => [short(a.member), ` can't use node ID ${a.node} of ${a.sequencer} and requests another`],
};

// entryText describes an entry of the log.
export function entryText(entry) {
  if (entry.unreadable) return `unreadable entry: ${entry.unreadable}`;
  return (say[entry.command] ?? (() => [entry.command]))(entry.args).join("");
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
      return "goes";
    case "attach":
    case "detach":
    case "decline":
      return "nodes";
    default:
      return "other";
  }
}
