// The verbs: what those who may change in the cluster, each after a question that says what will happen.

import { $, h, say } from "./dom.js";
import { ask, sequencerPath } from "./ask.js";
import { inJavaScript, isClaimed, layoutOf, moment, number, plural, rate, reservationsOf, short, stretches, who, whomOf } from "./words.js";

const kinds = [["all", "all members"], ["count", "a number of members"], ["percent", "a percentage of the members"]];
const allocation = (now) => [
  { name: "kind", label: "Allocated to", options: kinds, value: now?.kind ?? "all" },
  { name: "much", label: "Number or percentage", type: "number", min: 1, value: now?.count ?? now?.percent ?? "", optional: true },
];
const allocationOf = ({ kind, much }) => (kind === "all" ? { kind } : { kind, [kind]: Number(much) });
const type = (word) => ({ name: "confirm", label: `Type ${word} to confirm`, word });

// The kinds of sequencers that are created, and what each has that others have not.
const sequencerKinds = [["snowflake", "snowflakes: a time, a node ID and a sequence"], ["events", "in strict order: a time and a sequence"], ["counter", "a counter: 1, 2, 3 and so on"], ["strict", "a counter in strict order: ascending over all nodes"]];
const isCounting = (v) => v.ids === "counter" || v.ids === "strict";
const ofSnowflakes = (fields) => fields.map((f) => ({ ...f, when: (v) => v.ids === "snowflake" }));
const ofCounters = (fields) => fields.map((f) => ({ ...f, when: (v) => isCounting(v) && (f.name !== "max" || !v.dated) && (f.name === "max" || f.name === "dated" || v.dated) }));
const definitionOf = (v) => ({
  ...(v.ids === "snowflake" && { ...(v.nodes && { nodes: Number(v.nodes) }), allocation: allocationOf(v), ...(v.scattered && { scattered: true }) }),
  ...(isCounting(v) ? { kind: "counter", ...(v.dated ? { dated: v.dated, digits: Number(v.digits), ...(v.zone && { zone: v.zone }) } : v.max && { max: v.max }) } : { layout: v.layout }),
  ...((v.ids === "strict" || v.ids === "events") && { order: "strict" }),
});

// Of each verb: the name of its button, what will happen, the fields to fill in, the call, and what is said of its answer,
// if that matters. Destructive ones want a word to be typed. A field may say when there is one, by what others have.
const forCluster = {
  create: ["Create a sequencer", ({ model }) => ({
    says: "A sequencer gives IDs that are unique among its own. What is said here never changes. Where JavaScript rounds its IDs, read them as text there.",
    fields: [
      { name: "name", label: "Name" },
      { name: "ids", label: "IDs", options: sequencerKinds, value: "snowflake" },
      { name: "layout", label: "Layout; its IDs in JavaScript", options: Object.entries(model.layouts).map(([name, q]) => [name, `${name}; ${inJavaScript(layoutOf(q))}`]), value: "default", when: (v) => !isCounting(v) },
      ...ofSnowflakes([
        { name: "nodes", label: "Nodes; empty: all of the layout", type: "number", min: 1, optional: true },
        ...allocation(),
      ]),
      ...ofCounters([
        { name: "dated", label: "Its numbers begin with", options: [["", "1"], ["day", "the day: 20261126000001"], ["month", "the month: 202611000001"], ["year", "the year: 2026000001"]], value: "", optional: true },
        { name: "digits", label: "Digits after the date", type: "number", min: 1, value: 6 },
        { name: "zone", label: "Time zone of the date, such as Europe/Berlin; empty: UTC", optional: true },
        { name: "max", label: "Greatest number; empty: 9223372036854775807", optional: true },
      ]),
      { name: "prefix", label: "Prefix of its IDs as text; empty: none", optional: true },
      ...ofSnowflakes([{ name: "scattered", label: "As keys its IDs", options: [["", "sort by time"], ["yes", "are scattered over all ranges"]], value: "", optional: true }, { name: "reserve", label: "Node IDs reserved for later; empty: none", type: "number", min: 1, optional: true }]),
    ],
    call: (v) => ["POST", "/api/v1/sequencers", {
      name: v.name, ...(v.prefix && { prefix: v.prefix }), ...definitionOf(v), ...(v.reserve && { reserve: Number(v.reserve) }),
    }],
  })],
  policy: ["Share the cluster out", ({ model }) => ({
    says: "Each member holds node IDs of one of these sequencers only, by these percentages. “rest” is what the others leave; empty: not shared out. All empty: no policy.",
    fields: withNodeIDs(model).map((name) => {
      const share = model.sequencers.get(name).rules?.share;
      return { name, label: `${name}, percent`, value: share === undefined ? "" : share || "rest", optional: true };
    }),
    call: (v) => {
      const shares = Object.entries(v).filter(([, percent]) => percent !== "").map(([sequencer, percent]) => (percent === "rest" ? { sequencer } : { sequencer, percent: Number(percent) }));
      return shares.length ? ["PUT", "/api/v1/cluster/policy", { shares }] : ["DELETE", "/api/v1/cluster/policy"];
    },
  })],
};

const forSequencer = {
  attach: ["Attach this node", ({ q }) => ({ says: `This node requests a node ID of ${q.name}, and waits in line if none is free.`, call: () => ["POST", sequencerPath(q.name, "/attach")] })],
  detach: ["Detach this node", ({ q }) => ({ says: `This node stops giving IDs of ${q.name} and gives its node ID back.`, call: () => ["POST", sequencerPath(q.name, "/detach")] })],
  move: ["Move a node ID", ({ q, model, node }) => ({
    says: "The new holder gives back the node ID that it had. The former holder stops first if it lives, and else the new one waits until all IDs of the former are in the past.",
    fields: [
      { name: "node", label: "Node ID", type: "number", min: 0, value: node >= 0 ? node : ([...q.nodes.keys()].sort((a, b) => a - b)[0] ?? "") },
      { name: "to", label: "To", options: [...new Set([...q.nodes.values(), ...q.waiting])].map((id) => [id, nameOf(id, model)]) },
    ],
    call: (v) => ["POST", sequencerPath(q.name, "/move"), { node: Number(v.node), to: v.to }],
  })],
  allocate: ["Change the allocation", ({ q }) => ({
    says: `${q.name} is allocated to ${whomOf(q)}. Members that it is no longer allocated to give their node IDs back.`,
    fields: allocation(q.rules?.allocation ?? q.definition?.allocation),
    call: (v) => ["PUT", sequencerPath(q.name, "/allocation"), allocationOf(v)],
  })],
  reserve: ["Reserve node IDs", ({ q }) => ({
    says: `No member gets the node IDs of ${q.name} until they are released: something else uses them, such as a database that makes IDs. The highest of those for later are reserved first, then the highest that were never used.`,
    fields: [
      { name: "for", label: "For" },
      { name: "count", label: "How many", type: "number", min: 1, value: 1 },
    ],
    call: (v) => ["POST", sequencerPath(q.name, "/reserve"), { for: v.for, count: Number(v.count) }],
    told: (r) => `The node IDs ${stretches(r.nodes)} are reserved for ${r.for}. Their IDs may begin at ${moment(r.from)}: smaller ones may exist.`,
  })],
  release: ["Release node IDs", ({ q }) => ({
    says: reservationsOf(q).length === 0 ? `No node ID of ${q.name} is reserved.` : "Whatever used the node IDs has stopped for good, and made no IDs of times more than a minute ahead. Members get them again, in a minute.",
    fields: [{ name: "for", label: "For", options: reservationsOf(q).map((r) => [r.for, `${r.for}: ${stretches(r.nodes)}`]) }, type(q.name)],
    call: (v) => ["POST", sequencerPath(q.name, "/release"), { for: v.for, used_until: new Date(Date.now() + 60e3).toISOString() }],
  }), "bad"],
  destroy: ["Destroy", ({ q, model }) => ({
    says: `${holders(q, model)} ${traffic(q.given, q.gave, q.name)} All nodes stop giving IDs of ${q.name}, for ever. One of the same name that is created later gives none of its IDs again.`,
    fields: [type(q.name)], call: () => ["DELETE", sequencerPath(q.name)],
  }), "bad"],
};

const forMember = {
  drain: ["Drain", ({ id, model }) => ({
    says: `${nameOf(id, model)} gives its node ID of the sequencer back, and gets none until the drain is undone.`,
    fields: [{ name: "sequencer", label: "From", options: withNodeIDs(model).filter((name) => !drained(model, name, id)).map((name) => [name, name]) }],
    call: (v) => ["POST", sequencerPath(v.sequencer, "/drain"), { member: id }],
  })],
  undrain: ["Undo a drain", ({ id, model }) => ({
    says: `${nameOf(id, model)} may hold node IDs of the sequencer again.`,
    fields: [{ name: "sequencer", label: "Of", options: model.names().filter((name) => drained(model, name, id)).map((name) => [name, name]) }],
    call: (v) => ["POST", sequencerPath(v.sequencer, "/undrain"), { member: id }],
  })],
  expel: ["Expel", ({ id, model, last = model.members.get(id)?.last }) => ({
    says: `${nameOf(id, model)} ${usedBy(id, model)} It leaves the cluster: it gives no IDs, gives its node IDs back and ends. It can come back only when it is started again.`,
    fields: [type(short(id))], call: () => ["POST", "/api/v1/cluster/expel", { member: id, ...(last && { end_the_majority: true }) }],
  }), "bad"],
};

const withNodeIDs = (model) => model.names().filter((name) => !isClaimed(model.sequencers.get(name)));
const drained = (model, name, id) => model.sequencers.get(name).rules?.drained?.includes(id) ?? false;
// usedBy says what else a member is, as far as the page knows: what it gives, what it holds, and the machine of the quorum that
// ends with it.
function usedBy(id, model) {
  const { voter, last } = model.members.get(id) ?? {};
  return [
    `holds ${plural(model.heldBy(id).filter(([, node]) => node >= 0).length, "node ID", "node IDs")}.`,
    traffic(model.vitals.get(id)?.rate, model.gave.get(id), "it"),
    voter && `The machine ${voter}, a voter of the quorum, ends with it.`,
    last && "No majority of the voters is left then: nothing can be written, and no node can reserve more time.",
  ].filter(Boolean).join(" ");
}

// traffic says what callers get now, or got within a minute.
function traffic(speed, last, whom) {
  if (speed > 0) return `Callers get ${rate(speed)} IDs a second from ${whom}.`;
  if (Date.now() - last < 60e3) return `Callers got IDs from ${whom} within the last minute.`;
  return speed === 0 ? `Callers get no IDs from ${whom} now.` : "";
}

// holders names those that hold node IDs of a sequencer.
function holders(q, model) {
  if (isClaimed(q)) return `${q.name} is a ${q.definition.kind ?? "sequencer in strict order"}.`;
  const all = [...new Set(q.nodes.values())];
  if (all.length === 0) return `No member holds a node ID of ${q.name}.`;
  return `${plural(all.length, "member holds", "members hold")} ${plural(q.nodes.size, "node ID", "node IDs")} of ${q.name}: ${all.slice(0, few).map((id) => nameOf(id, model)).join(", ")}${all.length > few ? ` and ${number(all.length - few)} more` : ""}.`;
}
const few = 3;
const nameOf = (id, model) => (model.members.get(id)?.owner ? `${model.members.get(id).owner} (${short(id)})` : who(id));

// buttonsFor are the buttons of verbs about something.
const buttonsFor = (verbs, about, which = Object.keys(verbs)) => h("p", { class: "verbs" }, which.map((key) => {
  const [name, build, kind] = verbs[key];
  return h("button", { type: "button", "data-verb": key, class: kind, onclick: () => open(name, build(about()), kind) }, `${name}…`);
}));

export const clusterVerbs = (about) => buttonsFor(forCluster, about);
export const sequencerVerbs = (about) => buttonsFor(forSequencer, about);
export const memberVerbs = (id, model) => buttonsFor(forMember, () => ({ id, model }),
  ["drain", ...(model.names().some((name) => drained(model, name, id)) ? ["undrain"] : []), "expel"]);

// outcome shows what is said of an answer until somebody has read it.
function outcome(name, text) {
  const close = h("button", { type: "button", class: "primary", id: "sure-close", onclick: () => $("sure").close() }, "Close");
  $("sure").querySelector("form").replaceChildren(h("h2", { id: "sure-title" }, name), h("p", { role: "status", id: "sure-told" }, text), h("p", { class: "verbs" }, close));
  close.focus();
}

// open asks whether to go on.
function open(name, { says, fields = [], call, told }, kind) {
  const dialog = $("sure");
  const form = dialog.querySelector("form");
  const why = h("p", { class: "why", role: "alert", id: "sure-why" });
  const go = h("button", { type: "submit", class: `primary ${kind ?? ""}`, id: "sure-go" }, name);
  const inputs = fields.map((f) => {
    const at = { id: `sure-${f.name}`, name: f.name, required: !f.optional, autocomplete: "off", spellcheck: "false" };
    const input = f.options ? h("select", at, f.options.map(([value, text]) => h("option", { value }, text))) : h("input", { ...at, type: f.type ?? "text", min: f.min });
    if (f.value !== undefined) input.value = f.value;
    return h("p", { class: "field" }, h("label", { for: at.id }, f.label), input);
  });
  const values = () => Object.fromEntries(new FormData(form));
  const word = fields.find((f) => f.word)?.word;
  form.oninput = () => {
    go.disabled = word !== undefined && $("sure-confirm").value !== word;
    fields.forEach((f, i) => (inputs[i].hidden = inputs[i].lastChild.disabled = f.when !== undefined && !f.when(values())));
  };
  form.onsubmit = async (e) => {
    e.preventDefault();
    const { confirm: _, ...filled } = values();
    go.disabled = true;
    say(why, "");
    try {
      const [method, path, body] = call(filled);
      const answer = await ask(path, { method, body: body && JSON.stringify(body) });
      if (told) return outcome(name, told(await answer.json()));
      dialog.close();
      say($("say"), `${name}: done`);
    } catch (error) {
      say(why, error.message);
      go.disabled = false;
    }
  };
  form.replaceChildren(h("h2", { id: "sure-title" }, name), h("p", {}, says), ...inputs, why,
    h("p", { class: "verbs" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), go));
  form.oninput();
  dialog.showModal();
}
