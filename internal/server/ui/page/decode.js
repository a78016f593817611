// The box that decodes an ID. IDs have up to 63 bits, more than a number in JavaScript: here they are text or BigInt.

import { $, h, svg, say } from "./dom.js";
import { askJSON, sequencerPath } from "./ask.js";
import { number, plural, span, moment, layoutOf } from "./words.js";

export class Decode {
  constructor({ keep }) {
    this.keep = keep;
    this.of = $("id-of");
    this.of.addEventListener("change", () => this.preview());
    $("decode-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.decode();
    });
    $("id-new").addEventListener("click", () => this.take());
    new ResizeObserver(() => {
      if (narrow() === this.narrow || !this.model) return;
      if (this.shown) this.show(...this.shown);
      else this.preview();
    }).observe($("parts"));
  }

  // draw lists the sequencers.
  draw(model) {
    this.model = model;
    const names = model.names();
    if (this.names === names.join("/")) return;
    this.names = names.join("/");
    const chosen = this.of.value;
    this.of.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    this.of.value = names.includes(chosen) ? chosen : names.includes("default") ? "default" : (names[0] ?? "");
    this.preview();
  }

  // preview shows the layout of a sequencer's IDs until an ID is decoded.
  preview() {
    const q = this.model.sequencers.get(this.of.value);
    if (!q || this.shown) return;
    this.narrow = narrow();
    const l = layoutOf(q);
    $("parts").replaceChildren(...bits(null, l), h("p", { class: "soft" }, `An ID of ${q.name} has ${plural(l.time, "bit", "bits")} for the time since ${l.epoch.slice(0, 10)} in steps of ${l.tick}, ${l.node + l.datacenter} for the node, and ${l.sequence} for the sequence within a step.`));
  }

  async take() {
    try {
      const { id_str: id } = await askJSON(sequencerPath(this.of.value, "/id"), { method: "POST" });
      $("id").value = id;
      await this.decode();
    } catch (error) {
      this.fail(error.message);
    }
  }

  fail(why) {
    say($("decode-why"), why);
    this.shown = null;
    this.preview();
  }

  async decode() {
    const text = $("id").value.replaceAll(/[\s"',_]/g, "");
    if (text === "") return this.fail("Enter an ID.");
    if (!/^(0|[1-9][0-9]{0,18})$/.test(text)) return this.fail(`“${text.slice(0, 40)}” is not an ID; want a decimal number from 0 to 9223372036854775807.`);
    const name = this.of.value;
    let parts;
    try {
      parts = await askJSON(sequencerPath(name, `/ids/${text}`));
    } catch (error) {
      return this.fail(error.message);
    }
    say($("decode-why"), "");
    this.show(parts, name);
  }

  show(parts, name) {
    this.shown = [parts, name];
    this.narrow = narrow();
    const q = this.model.sequencers.get(name);
    const away = Date.now() - parts.unix_ms;
    const holder = q?.nodes.get(parts.node_id);
    const owner = holder && this.model.members.get(holder)?.owner;
    const who = holder ? h("span", {}, "now held by ", h("button", { type: "button", class: "link", onclick: () => this.keep(holder) }, h("code", {}, holder)), owner ? ` (${owner})` : "") : "free now";
    const facts = [
      ["time", "Time", [h("strong", {}, moment(parts.time)), ` ${span(away)} ${away < 0 ? "ahead" : "ago"}, tick ${number(parts.tick)}`]],
      ["node", "Node", [h("strong", {}, number(parts.node_id)), parts.datacenter || (q && layoutOf(q).datacenter) ? ` datacenter ${parts.datacenter}, node ${parts.node};` : "", " ", who]],
      ["sequence", "Sequence", [h("strong", {}, number(parts.sequence)), " in that tick"]],
    ];
    $("parts").replaceChildren(
      ...(q ? bits(BigInt(parts.id_str), layoutOf(q)) : []),
      h("dl", {}, facts.map(([kind, term, text]) => h("div", { class: kind }, h("dt", {}, h("i", { class: `key ${kind}` }), term), h("dd", {}, text)))));
  }
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
