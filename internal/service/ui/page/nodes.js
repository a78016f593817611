// The table of nodes with their vital signs. Only the rows that are seen are in the document: a thousand cost no more than ten.

import { $, h, svg, say, set, once, whenSized } from "./dom.js";
import { ago, clock, colourOf, offset, plural, rate, short, span, stateOf } from "./words.js";
import { spark, sparkClock } from "./rates.js";

const height = 42; // of a row, as in the style sheet
const beyond = 6; // rows on either side of those that are seen

// The columns: what they show, and what they sort by. Unknown values come last.
const columns = [
  ["node", "Node", (r) => r.name, "up"],
  ["state", "State", (r) => `${r.state.rank} ${r.name}`, "up"],
  ["rate", "IDs/s", (r) => r.signs.rate],
  ["given", "Given", (r) => r.signs.given],
  ["clock", "Clock", (r) => (r.signs.offset === undefined ? undefined : Math.abs(r.signs.offset))],
  ["left", "Horizon", (r) => r.signs.left, "up"],
  ["rtt", "Store", (r) => r.signs.rtt],
  ["version", "Version", (r) => r.m.version],
  ["since", "Up", (r) => r.m.since, "up"],
];

export class Nodes {
  constructor({ point, keep, history }) {
    this.point = point;
    this.keep = keep;
    this.history = history; // of an owner
    this.box = $("nodes");
    this.body = $("nodes-body");
    this.field = $("find");
    this.rows = new Map(); // that are in the document, by ID
    this.sorted = { by: "state", down: false };
    this.order = [];
    this.top = 0; // how far the rows are scrolled
    this.high = 0; // the room for them
    this.redraw = once(() => this.drawRows());
    this.heads = new Map(columns.map(([key, label, , first]) => {
      const button = h("button", { type: "button", onclick: () => this.sort(key, first) }, label);
      return [key, h("th", { scope: "col", "data-column": key }, button)];
    }));
    $("nodes-head").append(...this.heads.values());
    this.field.addEventListener("input", () => this.draw(this.model));
    this.box.addEventListener("scroll", () => {
      this.top = this.box.scrollTop;
      this.redraw();
    });
    whenSized(this.box, (room) => {
      if (this.high === room.height) return;
      this.high = room.height;
      this.redraw();
    });
    const idOf = (e) => e.target.closest("tr")?.dataset.id;
    this.body.addEventListener("pointerover", (e) => this.point(idOf(e) ?? null));
    this.body.addEventListener("pointerleave", () => this.point(null));
    this.body.addEventListener("click", (e) => e.target.closest("a") || (idOf(e) && this.keep(idOf(e))));
    this.box.addEventListener("keydown", (e) => {
      if (e.target !== this.box) return;
      const page = Math.max(1, Math.floor(this.box.clientHeight / height) - 2);
      const at = this.order.findIndex((r) => r.id === this.cursor);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.order.length - 1 }[e.key];
      if (to !== undefined) this.goto(Math.min(Math.max(to, 0), this.order.length - 1));
      else if (e.key === "Enter" || e.key === " ") this.keep(this.cursor);
      else if (e.key === "Escape") this.keep(null);
      else return;
      e.preventDefault();
    });
    this.box.addEventListener("blur", () => this.point(null));
  }

  goto(i) {
    this.cursor = this.order[i]?.id;
    const top = i * height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + 2 * height > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + 2 * height - this.box.clientHeight;
    this.point(this.cursor ?? null);
  }

  sort(by, first) {
    const down = first !== "up";
    this.sorted = { by, down: this.sorted.by === by ? !this.sorted.down : down };
    this.draw(this.model);
  }

  draw(model) {
    this.model = model;
    const words = this.field.value.trim().toLowerCase();
    const node = /(^|[\s·])\d+$/.test(words); // it may be a node ID
    if (node) model.indexHeld();
    const fits = (id, m) => words === "" || id.includes(words) || (m.owner ?? "").toLowerCase().includes(words) ||
      node && model.heldBy(id).some(([name, node]) => String(node) === words || `${name} ${node}` === words.replace("·", " ").replace(/\s+/g, " "));
    const all = [];
    for (const [id, m] of [...model.members, ...model.joins]) {
      if (fits(id, m)) all.push({ id, m, name: m.owner || id, state: stateOf(id, m, model), signs: model.vitals.get(id) ?? {} });
    }
    const value = columns.find(([key]) => key === this.sorted.by)[2];
    const way = this.sorted.down ? -1 : 1;
    for (const r of all) r.value = value(r);
    this.order = all.sort((a, b) => (a.value === undefined) - (b.value === undefined) || way * compare(a.value, b.value) || compare(a.name, b.name));
    for (const [key, head] of this.heads) set(head, "aria-sort", key === this.sorted.by ? (this.sorted.down ? "descending" : "ascending") : null);
    say($("found-more"), words === "" ? "" : all.length === 0 ? "no matches" : plural(all.length, "match", "matches"));
    set($("nodes-table"), "aria-rowcount", all.length + 1);
    this.drawRows();
  }

  // drawRows draws the rows that are seen.
  drawRows() {
    if (!this.model) return;
    const from = Math.max(0, Math.floor(this.top / height) - beyond);
    const to = Math.min(this.order.length, from + Math.ceil((this.high || 480) / height) + 2 * beyond);
    const seen = this.order.slice(from, to);
    const want = new Set(seen.map((r) => r.id));
    for (const [id, row] of this.rows) {
      if (want.has(id)) continue;
      row.tr.remove();
      this.rows.delete(id);
    }
    $("nodes-above").style.height = `${from * height}px`;
    $("nodes-below").style.height = `${(this.order.length - to) * height}px`;
    let next = this.body.firstChild;
    seen.forEach((r, i) => {
      let row = this.rows.get(r.id);
      if (!row) {
        row = this.row(r.id);
        this.rows.set(r.id, row);
      }
      if (row.tr === next) next = next.nextSibling;
      else this.body.insertBefore(row.tr, next);
      set(row.tr, "aria-rowindex", from + i + 2);
      this.fill(row, r);
    });
  }

  row(id) {
    const swatch = h("i", { class: "swatch" });
    const parts = { link: h("a", { target: "_blank", rel: "noreferrer" }), state: h("span", { class: "clip" }), rate: h("span", {}), clock: h("span", {}) };
    for (const name of ["spark", "sparkClock"]) parts[name] = svg("svg", { viewBox: "0 0 72 22", "aria-hidden": "true" });
    const cells = Object.fromEntries(columns.map(([key]) => [key, h("td", { class: key })]));
    parts.id = h("code", {}, short(id));
    cells.node.append(swatch, h("span", { class: "who" }, parts.link, parts.id));
    cells.state.append(h("span", { class: "lamp", "aria-hidden": "true" }), parts.state);
    cells.rate.append(parts.spark, parts.rate);
    cells.clock.append(parts.sparkClock, parts.clock);
    return { ...parts, cells, swatch, tr: h("tr", { "data-id": id }, Object.values(cells)) };
  }

  fill(row, { id, m, state, signs }) {
    row.swatch.style.setProperty("--hue", colourOf(id));
    const known = (value, text) => (value === undefined ? "–" : text(value));
    const page = pageOf(m);
    const self = id === this.model.facts.member;
    say(row.link, m.owner || "not known");
    set(row.link, "href", self ? null : page);
    set(row.link, "title", page && !self ? `Open the page of this node, ${page}` : null);
    say(row.id, `${short(id)}${self ? " · this node" : ""}`);
    set(row.tr, "data-state", state.kind);
    say(row.state, state.text);
    set(row.state, "title", state.title ?? state.text);
    say(row.rate, m.state === "gone" ? "–" : known(signs.rate, rate)); // none comes from who is gone
    say(row.cells.given, known(signs.given, rate));
    say(row.clock, known(signs.offset, offset));
    say(row.cells.left, known(signs.left, (s) => (s < 0 ? "passed" : span(s * 1000))));
    say(row.cells.rtt, known(signs.rtt, (ms) => (ms < 0.1 ? "< 0.1 ms" : `${ms} ms`)));
    say(row.cells.version, m.version || "–");
    say(row.cells.since, known(m.since, ago));
    set(row.cells.since, "title", m.since ? `since ${clock(m.since)}` : null);
    const past = this.history(m.owner);
    if (past && row.drawn !== past.at) {
      row.drawn = past.at;
      spark(row.spark, past);
      sparkClock(row.sparkClock, past);
    }
  }

  // mark marks the rows of the members that are pointed at and pinned.
  mark(pointed, kept) {
    for (const [id, { tr }] of this.rows) {
      tr.classList.toggle("pointed", id === pointed);
      set(tr, "aria-selected", id === kept ? "true" : null);
    }
  }
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// pageOf is the address of a node's page, if it tells one that is safe to link to.
export function pageOf(m) {
  const at = m.addresses?.admin ?? "";
  return /^https?:\/\//.test(at) ? `${at.replace(/\/$/, "")}/ui/` : null;
}
