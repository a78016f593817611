// The box that inspects an ID. IDs have up to 63 bits, more than a number in JavaScript: here they are text or BigInt.

import { $, h, svg, say } from "./dom.js";
import { askJSON, sequencerPath } from "./ask.js";
import { number, plural, span, moment, isClaimed, isCounter, layoutOf } from "./words.js";

const day = 86400e3;

export class Inspect {
  constructor({ keep }) {
    this.keep = keep;
    this.of = $("id-of");
    this.of.addEventListener("change", () => (this.shown ? this.inspect("decimal") : this.preview()));
    $("inspect-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.inspect();
    });
    $("id-new").addEventListener("click", () => this.take());
    addEventListener("hashchange", () => this.visit());
    new ResizeObserver(() => {
      if (narrow() === this.narrow || !this.model) return;
      if (this.shown) this.show();
      else this.preview();
    }).observe($("parts"));
  }

  // draw lists the sequencers and the layouts.
  draw(model) {
    this.model = model;
    const names = model.names();
    const key = JSON.stringify([names, Object.keys(model.layouts)]);
    if (this.names === key) return;
    const first = this.names === undefined;
    if (first && names.length + Object.keys(model.layouts).length === 0) return; // nothing has come yet
    this.names = key;
    const chosen = this.of.value;
    const group = (kind, label, all) => h("optgroup", { label }, all.map((name) => h("option", { value: `${kind}=${name}` }, name)));
    this.of.replaceChildren(...(names.length ? [group("sequencer", "Sequencers of this cluster", names)] : []), group("layout", "Layouts", Object.keys(model.layouts)));
    this.of.value = chosen;
    if (this.of.value === "") this.of.value = names.includes("default") ? "sequencer=default" : this.of.options[0]?.value;
    this.preview();
    if (first) this.visit();
  }

  // visit inspects the ID in the page's address: #inspect=ID&sequencer=NAME or &layout=NAME.
  visit() {
    const at = new URLSearchParams(location.hash.slice(1));
    const id = at.get("inspect");
    if (id === null || this.names === undefined) return; // draw comes back once there is what to read it as
    for (const kind of ["sequencer", "layout"]) if (at.has(kind)) this.of.value = `${kind}=${at.get(kind)}`;
    $("id").value = id;
    if (this.of.value === "") this.fail(`There is no ${at.has("layout") ? `layout ${at.get("layout")}` : `sequencer ${at.get("sequencer")}`} here.`);
    else this.inspect("decimal");
    $("inspect").scrollIntoView({ block: "nearest" });
  }

  // chosen is what IDs are read as: {kind, name, q}. Q has a definition and a capacity; undefined: it is gone.
  chosen() {
    const [kind, name] = this.of.value.split(/=(.*)/);
    return { kind, name, q: kind === "layout" ? this.model?.layouts[name] : this.model?.sequencers.get(name) };
  }

  // preview shows a layout until an ID is inspected.
  preview() {
    const { kind, name, q } = this.chosen();
    $("id-new").disabled = kind !== "sequencer";
    if (!q || this.shown) return;
    if (isCounter(q)) return this.showCounter(name);
    this.narrow = narrow();
    const l = layoutOf(q);
    $("parts").replaceChildren(...bits(null, l), h("p", { class: "soft" }, `An ID of ${name} has ${plural(l.time, "bit", "bits")} for the time since ${l.epoch.slice(0, 10)} in steps of ${l.tick}, ${l.node + l.datacenter} for the node, and ${l.sequence} for the sequence within a step.`));
  }

  async take() {
    try {
      const { id_str: id } = await askJSON(sequencerPath(this.chosen().name, "/id"), { method: "POST" });
      $("id").value = id;
      this.inspect("decimal");
    } catch (error) {
      this.fail(error.message);
    }
  }

  fail(why) {
    say($("inspect-why"), why);
    this.shown = null;
    this.preview();
  }

  // inspect shows the ID that was entered, perhaps with its form, such as "as=hex 1234567890123456". A node reads the forms
  // other than decimal, and digits that may have another one.
  async inspect(as = "") {
    const entered = $("id").value;
    let text = entered.replace(/\bas=([\w-]+)/, (_, form) => ((as ||= form), "")).replaceAll(/[\s"',]/g, "");
    if (text === "") return this.fail("Enter an ID.");
    const { kind, q, name } = this.chosen();
    if (!q) return this.fail("Choose a sequencer or a layout.");
    const digits = text.replaceAll("_", "");
    if (/^[0-9]+$/.test(digits)) text = digits;
    if (kind === "sequencer" && as !== "decimal" && !/^[0-9]{17,}$/.test(text)) {
      try {
        text = (await askJSON(sequencerPath(name, `/ids/${encodeURIComponent(text)}${as && `?as=${as}`}`))).id_str;
      } catch (error) {
        return this.fail(error.message);
      }
      if ($("id").value !== entered) return; // there is another one by now
      $("id").value = text;
    }
    const id = /^(0|[1-9][0-9]{0,18})$/.test(text) ? BigInt(text) : -1n;
    if (id < 0n || id >= 1n << 63n) return this.fail(`“${text.slice(0, 40)}” is not an ID; want a decimal number from 0 to 9223372036854775807${kind === "layout" ? ", or a sequencer for other forms" : ""}.`);
    const parts = isCounter(q) || partsOf(id, layoutOf(q));
    if (!parts) return this.fail(`${text} is not an ID of ${name}: it has more bits than the layout.`);
    say($("inspect-why"), "");
    this.shown = id;
    if (kind === "sequencer" && !isClaimed(q)) this.askAbout(name, id);
    history.replaceState(null, "", `#inspect=${id}&${new URLSearchParams([this.of.value.split(/=(.*)/).slice(0, 2)])}`);
    this.show();
  }

  show() {
    const id = this.shown;
    this.narrow = narrow();
    const { kind, name, q } = this.chosen();
    $("id-new").disabled = kind !== "sequencer";
    if (!q) return;
    if (isCounter(q)) return this.showCounter(name);
    const l = layoutOf(q);
    const parts = partsOf(id, l);
    const away = Date.now() - parts.ms;
    const node = [h("strong", {}, number(parts.nodeID)), l.datacenter ? ` datacenter ${parts.datacenter}, node ${parts.node}` : ""];
    if (kind === "sequencer" && !isClaimed(q)) node.push(l.datacenter ? "; " : " ", this.holder(q, parts.nodeID));
    const all = [
      ["time", "Time", [h("strong", {}, timeOf(parts)), ` ${span(away)} ${away < 0 ? "ahead" : "ago"}, tick ${number(parts.tick)}`]],
      ["node", "Node", node],
      ["sequence", "Sequence", [h("strong", {}, number(parts.sequence)), " in that tick"]],
    ];
    const facts = isClaimed(q) ? all.filter(([kind]) => kind !== "node") : all;
    $("parts").replaceChildren(
      ...bits(made(id, l), l),
      h("dl", {}, facts.map(([kind, term, text]) => h("div", { class: kind }, h("dt", {}, h("i", { class: `key ${kind}` }), term), h("dd", {}, text)))),
      ...this.others(id, kind, name),
      h("p", { class: "soft" }, h("a", { href: location.hash, id: "inspect-link" }, "Link to this ID")));
  }

  // showCounter says what there is to see of the numbers of a counter.
  showCounter(name) {
    const { dated, digits } = this.chosen().q.definition;
    $("parts").replaceChildren(h("p", { class: "soft" }, dated ? `${name} is a counter: a number is the ${dated} and ${plural(digits, "digit", "digits")} of a counter in it.` : `${name} is a counter: its IDs are the numbers 1, 2, 3 and so on, without a time, a node and a sequence.`));
  }

  // askAbout asks whether the node ID was ever held.
  async askAbout(name, id) {
    this.never = null;
    const parts = await askJSON(sequencerPath(name, `/ids/${id}?as=decimal`)).catch(() => ({}));
    if (!parts.never_held || this.shown !== id || this.chosen().name !== name) return;
    this.never = id;
    this.show();
  }

  holder(q, node) {
    const holder = q.nodes.get(node);
    if (holder) this.never = null;
    const owner = holder && this.model.members.get(holder)?.owner;
    return holder ? h("span", {}, "now held by ", h("button", { type: "button", class: "link", onclick: () => this.keep(holder) }, h("code", {}, holder)), owner ? ` (${owner})` : "") : this.never === this.shown ? "held by nobody, and never was" : "free now";
  }

  // others tells when the ID would have been made in other layouts, to recognise where an ID comes from.
  others(id, kind, name) {
    const all = Object.entries(this.model.layouts).filter(([other]) => kind !== "layout" || other !== name).map(([other, q]) => [other, partsOf(id, layoutOf(q))]);
    const likely = all.filter(([, parts]) => parts && parts.ms < Date.now() + day);
    if (likely.length === 0) return [];
    return [h("p", { class: "soft" }, "As another layout:"), h("ul", { class: "chips" }, likely.map(([other, parts]) => h("li", {}, h("button", {
      type: "button", onclick: () => {
        this.of.value = `layout=${other}`;
        this.inspect();
      },
    }, `${other} · ${timeOf(parts).slice(0, 10)}`))))];
  }
}

// made is an ID as its node made it, before it was scattered: as firn.Gather does.
function made(id, l) {
  if (!l.scattered || id === null) return id;
  let x = id ^ (id >> 32n);
  for (let i = 0; i < 2; i++) {
    x = (x * 2812876173790338467n) & ((1n << 63n) - 1n);
    x ^= x >> 32n;
  }
  return x;
}

// partsOf splits an ID by a layout; null: it has more bits.
function partsOf(id, l) {
  let rest = made(id, l);
  const take = (bits) => {
    const part = rest & ((1n << BigInt(bits)) - 1n);
    rest >>= BigInt(bits);
    return Number(part);
  };
  const p = {};
  for (const field of l.lowest ? ["node", "datacenter", "sequence"] : ["sequence", "node", "datacenter"]) p[field] = take(l[field]);
  if (rest >> BigInt(l.time)) return null;
  p.tick = Number(rest); // has at most 53 bits in all presets
  p.nodeID = p.datacenter * 2 ** l.node + p.node;
  p.ms = Date.parse(l.epoch) + Number((rest * BigInt(nanoseconds(l.tick))) / 1000000n);
  return p;
}

const timeOf = (parts) => (parts.ms < 8.64e15 ? moment(new Date(parts.ms).toISOString()) : "after the end of the calendar");

// nanoseconds reads a tick as Go writes it: one unit, as it is at most a second.
function nanoseconds(tick) {
  const [, n, unit] = /^([\d.]+)(ns|µs|ms|s)$/.exec(tick);
  return Math.round(Number(n) * { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }[unit]);
}

// narrow tells whether a row of all bits would be too small to read.
const narrow = () => $("parts").clientWidth < 500;

// bits draws the bits of an ID, or empty ones without an ID, as cells in the colours of their fields.
function bits(id, l) {
  const node = [["datacenter", l.datacenter], ["node", l.node]];
  const fields = [["time", l.time], ...(l.lowest ? [["sequence", l.sequence], ...node] : [...node, ["sequence", l.sequence]])].filter((f) => f[1] > 0);
  const all = fields.reduce((sum, f) => sum + f[1], 0);
  const text = id === null ? " ".repeat(all) : id.toString(2).padStart(all, "0");
  const rows = narrow() ? [fields.slice(0, 1), fields.slice(1)].filter((row) => row.length > 0) : [fields];
  const longest = Math.max(...rows.map((row) => row.reduce((sum, f) => sum + f[1], 0)));
  let from = 0;
  return rows.map((row) => {
    const picture = drawBits(row, text.slice(from), longest);
    from += row.reduce((sum, f) => sum + f[1], 0);
    return picture;
  });
}

const width = 12; // of a bit

// drawBits draws one row of fields.
function drawBits(fields, text, longest) {
  const picture = svg("svg", { class: "bits", viewBox: `0 0 ${longest * width} 58`, role: "img", "aria-label": fields.map(([kind, n]) => `${plural(n, "bit", "bits")} ${kind}`).join(", ") });
  let at = 0;
  for (const [kind, n] of fields) {
    const group = svg("g", { class: kind });
    for (let i = 0; i < n; i++, at++) {
      const bit = text[at] === "1" ? "on" : "off";
      group.append(svg("rect", { x: at * width + 0.75, y: 20, width: width - 1.5, height: 26, rx: 2.5, class: bit }),
        svg("text", { x: at * width + width / 2, y: 33, class: `bit ${bit}` }, text[at]));
    }
    group.append(svg("rect", { x: (at - n) * width + 1, y: 50, width: n * width - 2, height: 3, rx: 1.5, class: "bar" }),
      svg("text", { x: (at - n / 2) * width, y: 11, class: "field" }, n < 5 ? String(n) : `${kind} · ${n}`));
    picture.append(group);
  }
  return picture;
}
