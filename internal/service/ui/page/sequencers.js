// The sequencers: one with its node IDs, and the others to choose from.

import { $, h, say, set, once, whenSeen, whenSized } from "./dom.js";
import { askJSON, sequencerPath } from "./ask.js";
import { clock, inJavaScript, isClaimed, layoutOf, number, plural, rate, reservationsOf, span, stretches, who, whomOf } from "./words.js";
import { clusterVerbs, sequencerVerbs } from "./verbs.js";
import * as grid from "./grid.js";

const readEvery = 5000;
const enough = 8; // sequencers that are seen at once
const soonest = 2500; // between two readings when something has changed

export class Sequencers {
  constructor({ keep, point, soon }) {
    this.keep = keep;
    this.point = point;
    this.soon = soon;
    this.width = 0; // that there is for the grid
    this.tabs = $("tabs");
    this.field = $("find-sequencer");
    this.sheet = $("sheet");
    this.rows = new Map();
    this.horizons = new Map();
    this.large = new grid.Drawn();
    this.cursor = -1;
    this.build();
    this.redraw = once(() => this.drawGrid());
    this.stale = new Set(); // the names of the sequencers whose small pictures are not up to date
    this.redrawSmall = whenSeen(this.tabs, once(() => this.drawSmall()));
    whenSized(this.sheet, ({ width }) => {
      if (this.width === width) return;
      this.width = width;
      this.redraw();
    });
    new IntersectionObserver((seen) => {
      this.visible = seen.at(-1).isIntersecting;
      if (this.visible) this.read();
    }).observe(this.sheet);
  }

  build() {
    this.title = h("h3", {});
    this.facts = h("dl", { class: "facts" });
    this.canvas = h("canvas", { id: "sheet-grid", class: "grid", tabindex: 0, role: "application", "aria-label": "Node IDs", "aria-describedby": "cell" });
    this.cell = h("p", { id: "cell", class: "cell", role: "status" });
    this.line = h("p", { class: "line" });
    this.note = h("p", { class: "soft" });
    this.legend = h("ul", { class: "legend" });
    $("cluster-verbs").replaceWith(clusterVerbs(() => ({ model: this.live })));
    const verbs = this.verbs = sequencerVerbs(() => ({ q: this.live.sequencers.get(this.name), model: this.live, node: this.chosen ?? -1 }));
    this.sheet.append(h("div", { class: "sheet-head" }, this.title, this.facts, verbs), this.cell, this.canvas, this.note, this.line, this.legend);
    this.canvas.addEventListener("pointermove", (e) => this.move(this.under(e)));
    this.canvas.addEventListener("pointerleave", () => this.move(-1));
    this.canvas.addEventListener("blur", () => this.move(-1));
    this.canvas.addEventListener("click", (e) => this.choose(this.under(e)));
    this.canvas.addEventListener("keydown", (e) => {
      if (!this.shape) return;
      const { columns, rows } = this.shape;
      const at = grid.rowOf(this.shape, this.cursor);
      const last = rows.at(-1).to;
      const down = at && (at.free ? at.to + 1 : this.cursor + columns);
      const to = { ArrowRight: at?.free ? at.to + 1 : this.cursor + 1, ArrowLeft: this.cursor - 1, ArrowDown: down, ArrowUp: this.cursor - columns, Home: 0, End: last }[e.key];
      if (to !== undefined) this.move(at ? Math.min(Math.max(to, 0), last) : 0);
      else if (e.key === "Enter" || e.key === " ") this.choose(this.cursor);
      else if (e.key === "Escape") this.keep(null);
      else return;
      e.preventDefault();
    });
    this.field.addEventListener("input", () => this.model && this.filter(this.model.names()));
    this.tabs.addEventListener("keydown", (e) => {
      const names = [...this.rows.keys()].filter((name) => !this.rows.get(name).row.hidden);
      const at = names.indexOf(this.name);
      const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[e.key];
      if (to === undefined || !names[to]) return;
      e.preventDefault();
      this.open(names[to]);
      this.rows.get(names[to]).row.focus();
    });
  }

  under(e) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [Math.floor((e.clientX - box.left) / this.shape.pitch), e.clientY - box.top];
    const row = this.shape.rows.findLast((row) => row.top <= y);
    return row && x >= 0 && x < this.shape.columns ? row.from + (row.free ? 0 : x) : -1;
  }

  // move puts the cursor on a node ID, or on the bar that it is in; -1: nowhere.
  move(node) {
    const row = grid.rowOf(this.shape, node);
    const cursor = row?.free ? row.from : node;
    if (cursor === this.cursor) return;
    this.cursor = cursor;
    this.redraw();
    this.point(this.holder(cursor) ?? null);
  }

  holder(node) {
    return this.model.sequencers.get(this.name)?.nodes.get(node);
  }

  choose(node) {
    const holder = this.holder(node);
    this.chosen = holder ? node : undefined;
    if (holder) this.keep(holder);
  }

  // open shows a sequencer, with the cursor on one of its node IDs.
  open(name, node) {
    this.name = name;
    this.cursor = -1;
    this.chosen = undefined;
    this.draw(this.model, this.look, new Set());
    if (node >= 0) {
      this.cursor = node;
      this.canvas.focus();
      this.canvas.scrollIntoView({ block: "nearest" });
      this.redraw();
    }
    this.read();
  }

  // draw shows a model of which these sequencers have changed; null: all.
  draw(model, look, changed) {
    const other = model !== this.model;
    this.verbs.querySelector("[data-verb=destroy]").hidden = this.name === "default"; // which no server destroys
    look.marked = this.look?.marked ?? null;
    this.model = model;
    this.look = look;
    const names = model.names();
    say($("no-sequencers"), names.length ? "" : model.past ? "There was no sequencer." : model.doubt === null ? "There is no sequencer yet." : "None is known at present.");
    if (!names.includes(this.name)) this.name = names.includes("default") ? "default" : names[0];
    if ([...this.rows.keys()].join("/") !== names.join("/")) this.list(names);
    this.filter(names);
    for (const name of names) {
      const small = this.rows.get(name);
      if (!changed || changed.has(name) || other || !small.drawn) this.drawRow(name, small);
      set(small.row, "aria-selected", name === this.name);
      set(small.row, "tabindex", name === this.name ? 0 : -1);
    }
    if (changed?.has(this.name)) this.read(soonest);
    this.drawSheet(!changed || changed.has(this.name) || other);
  }

  // filter lists the sequencers whose names have what is searched for. With a few there is nothing to search.
  filter(names) {
    $("search-sequencer").hidden = names.length <= enough;
    const words = names.length <= enough ? "" : this.field.value.trim().toLowerCase();
    const found = names.filter((name) => name.includes(words));
    for (const name of names) this.rows.get(name).row.hidden = !found.includes(name);
    say($("found-sequencers"), words === "" ? "" : found.length === 0 ? "no matches" : plural(found.length, "match", "matches"));
  }

  // mark highlights the cells of a member.
  mark(look) {
    const same = this.look?.marked === look.marked;
    this.look = look;
    if (!same) this.redraw();
  }

  list(names) {
    const rows = new Map();
    for (const name of names) rows.set(name, this.rows.get(name) ?? this.row(name));
    this.rows = rows;
    this.tabs.replaceChildren(...[...rows.values()].map((r) => r.row));
  }

  row(name) {
    const picture = h("canvas", { class: "small", "aria-hidden": "true" });
    const [count, speed, here] = [h("span", { class: "soft" }), h("span", { class: "speed" }), h("span", { class: "here" })];
    const row = h("button", { type: "button", role: "tab", "aria-controls": "sheet", "data-name": name, onclick: () => this.open(name) },
      picture, h("span", { class: "what" }, h("strong", { class: "clip" }, name), speed, count, here));
    return { row, picture, count, speed, here, small: new grid.Drawn() };
  }

  drawRow(name, r) {
    const q = this.model.sequencers.get(name);
    r.drawn = true;
    this.stale.add(name);
    this.redrawSmall();
    r.picture.hidden = isClaimed(q);
    say(r.count, isClaimed(q) ? q.definition.kind ?? "strict order" : `${number(q.nodes.size)} of ${number(q.capacity)} held${q.waiting.length ? `, ${number(q.waiting.length)} waiting` : ""}`);
    const doubt = this.model.doubt;
    say(r.speed, this.speed(q) ?? "");
    say(r.here, q.here && q.here.state !== "none" ? `${hereText(q)}${doubt === null ? "" : ", not confirmed"}` : "");
    set(r.here, "class", `here ${doubt === null ? (q.here?.state ?? "") : "doubt"}`);
  }

  // speed is how many IDs per second a sequencer gives now; undefined: that is not known.
  speed(q) {
    return this.model.past || this.model.doubt !== null || typeof q.given !== "number" ? undefined : `${rate(q.given)} IDs/s`;
  }

  drawSmall() {
    for (const name of this.stale) {
      const [r, q] = [this.rows.get(name), this.model.sequencers.get(name)];
      if (r && q && !isClaimed(q)) grid.drawSmall(r.picture, r.small, q, this.look, 52);
    }
    this.stale.clear();
  }

  drawSheet(changed) {
    const q = this.model.sequencers.get(this.name);
    this.sheet.hidden = !q;
    if (!q) return;
    set(this.sheet, "aria-label", this.name);
    say(this.title, this.name);
    if (!changed && this.drawn === this.name) return;
    this.drawn = this.name;
    this.drawFacts(q);
    const counter = isClaimed(q);
    for (const part of [this.cell, this.canvas, this.note, this.line, this.legend]) part.hidden = counter;
    for (const verb of this.verbs.querySelectorAll("button:not([data-verb=destroy])")) verb.hidden = counter;
    if (counter) return;
    const line = q.waiting.slice(0, 8).map(who).join(", ");
    say(this.line, q.waiting.length === 0 ? "No member is waiting." : `Waiting for a node ID: ${line}${q.waiting.length > 8 ? ` and ${number(q.waiting.length - 8)} more` : ""}.`);
    this.redraw();
  }

  drawFacts(q) {
    const counter = isClaimed(q);
    const { definition: d = {} } = q;
    const facts = counter ? [["after", d.after ?? "0"]]
      : [["held", number(q.nodes.size)], ["free", number(q.capacity - q.nodes.size - reservationsOf(q).reduce((n, r) => n + r.nodes.length, 0))], ["waiting", number(q.waiting.length)]];
    if (d.kind) facts.unshift(["kind", d.kind]);
    if (d.dated) facts.push(["dated", `${d.dated} in ${d.zone ?? "UTC"}, then ${plural(d.digits, "digit", "digits")}`]);
    else if (d.kind) facts.push(["max", d.max ?? "9223372036854775807"]);
    if (d.order) facts.push(["order", `${d.order}: each is above all that were given`]);
    if (counter && q.here?.reserved) facts.push(["reserved", `up to ${q.here.reserved}`]);
    if (q.definition && !d.kind) {
      const l = layoutOf(q);
      if (d.nodes < q.capacity) facts.unshift(["node IDs", `${number(q.capacity)}, as ${number(q.definition.nodes)} are rounded up`]);
      if (!counter) facts.push(["allocated to", whomOf(q)]);
      facts.push(["layout", [l.time, ...(l.datacenter ? [l.datacenter] : []), ...(l.lowest ? [l.sequence, l.node] : [l.node, l.sequence])].join(" / ") + ` bits, ${l.tick}`], ["in JavaScript", inJavaScript(l)]);
    }
    if (q.rules?.share !== undefined) facts.push(["policy", q.rules.share ? `${q.rules.share} % of the members` : "the rest of the members"]);
    if (q.rules?.drained.length) facts.push(["drained", q.rules.drained.map(who).join(", ")]);
    for (const r of reservationsOf(q)) facts.push(["reserved", `${stretches(r.nodes)} for ${r.for}${r.since ? ` since ${r.since.slice(0, 10)}` : ""}`]);
    if (q.definition?.prefix) facts.push(["prefix", q.definition.prefix]);
    if (q.definition?.scattered) facts.push(["scattered", "IDs do not sort by time"]);
    if (q.definition?.random_start) facts.push(["start", "each tick begins at a random number"]);
    if (q.definition?.attach) facts.push(["attach", q.definition.attach]);
    if (this.speed(q)) facts.unshift(["now", this.speed(q)]);
    if (q.rate) facts.push(["at most, per node", `${number(q.rate)} /s`]);
    if (q.until) facts.push(["lasts until", q.until.slice(0, 10)]);
    const doubt = this.model.doubt;
    if (q.here) facts.push(["this node", `${hereText(q)}${doubt === null ? "" : `, not confirmed${doubt ? ` since ${clock(doubt)}` : ""}`}`]);
    const key = JSON.stringify(facts);
    if (this.factsFor === key) return;
    this.factsFor = key;
    this.facts.replaceChildren(...facts.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text))));
  }

  drawGrid() {
    const q = this.model?.sequencers.get(this.name);
    if (!q || isClaimed(q) || this.width === 0) return;
    const horizons = this.model.past ? null : this.horizons.get(this.key(q));
    const now = Date.now();
    this.shape = grid.shapeOf(q, horizons, this.width);
    set(this.canvas, "data-columns", this.shape.columns);
    this.canvas.style.width = `${this.shape.width}px`;
    this.canvas.style.height = `${this.shape.height}px`;
    const counts = grid.drawGrid(this.canvas, this.large, this.shape, q, horizons, now, { ...this.look, cursor: this.cursor });
    this.drawCell(q, horizons, now);
    this.drawLegend(q, horizons, counts);
    const notes = [];
    if (this.shape.hidden > 0) notes.push("Only the first node IDs in use are shown.");
    if (this.model.past) notes.push("The horizons of then are not known.");
    else if (horizons && counts[grid.Doubt] > 0) notes.push(`Node IDs with a dashed edge are not confirmed; their horizons are as of ${clock(horizons.read)}.`);
    say(this.note, notes.join(" "));
    set(this.canvas, "data-doubt", counts[grid.Doubt]);
    set(this.canvas, "aria-label", `${number(q.capacity)} node IDs of ${this.name}, ${number(q.nodes.size)} held`);
  }

  // key distinguishes a sequencer from former ones of its name.
  key(q) {
    return `${q.name}@${q.created}`;
  }

  drawCell(q, horizons, now) {
    const node = this.cursor;
    const row = grid.rowOf(this.shape, node);
    if (!row) {
      say(this.cell, "Point at a cell, or use the arrow keys, to see its details.");
      return;
    }
    if (row.free) {
      say(this.cell, `Node IDs ${number(row.from)} to ${number(row.to)}: free, ${horizons ? "never used" : "as far as is known"}.`);
      return;
    }
    const holder = q.nodes.get(node);
    const n = horizons?.byNode.get(node);
    const lead = horizons?.lead(node, now);
    const owner = n?.owner || this.model.members.get(holder)?.owner;
    const words = [`Node ID ${number(node)}: `];
    const doubt = holder && !this.model.fresh(holder);
    words.push(holder ? `held by ${holder}${owner ? ` (${owner})` : ""}${doubt ? ", not confirmed now" : ""}` : n?.live ? `free in the log; ${n.owner || "a former member"} may still use it until its horizon` : n ? "free, used before" : horizons ? "never used" : "free");
    if (n?.unreadable) words.push(", unreadable horizon");
    else if (lead > 0) words.push(`, horizon ${span(lead)} ahead`);
    else if (lead !== undefined) words.push(`, horizon passed ${span(lead)} ago`);
    say(this.cell, words.join(""));
  }

  drawLegend(q, horizons, counts) {
    const entries = [
      [grid.Full, "full", "horizon ahead"], [grid.Low, "low", "less than half the usual lead"], [grid.Past, "over", "held, horizon passed"],
      [grid.Held, "held", horizons ? "held, horizon not read yet" : "held"], [grid.Doubt, "doubt", "held, not confirmed now"], [grid.Closing, "closing", "free in the log, still in use"],
      [grid.Used, "used", "free, used before"], [grid.Free, "never", horizons ? "never used" : "free"],
    ].map(([state, kind, text]) => [kind, text, counts[state]]).filter((e) => e[2] > 0 || ["full", "low", "over", "never"].includes(e[0]) && horizons);
    const key = JSON.stringify(entries);
    if (this.legendFor === key) return;
    this.legendFor = key;
    this.legend.replaceChildren(...entries.map(([kind, text, count]) => h("li", { "data-kind": kind }, h("i", { class: `swatch-cell ${kind}` }), `${text} `, h("b", {}, number(count)))),
      h("li", {}, h("i", { class: "swatch-cell self" }), "this node"));
  }

  // read reads the horizons of the shown sequencer, unless the last read was within so many milliseconds.
  async read(within = 1000) {
    clearTimeout(this.timer);
    const q = this.live?.sequencers.get(this.name);
    const since = Date.now() - (this.tried ?? 0);
    const due = this.tried === undefined || this.triedFor !== this.name || since >= within;
    if (q && !isClaimed(q) && this.visible && !document.hidden && !this.reading && due) {
      this.reading = true;
      [this.tried, this.triedFor] = [Date.now(), this.name];
      try {
        const answer = await askJSON(sequencerPath(q.name, "/nodes"));
        const key = this.key(q);
        if (!this.horizons.has(key)) this.horizons.set(key, new grid.Horizons());
        this.horizons.get(key).take(answer, Date.now());
      } catch {
        // the last horizons stay, until they are too old to be shown as confirmed
      }
      this.reading = false;
      this.soon(this.redraw);
    }
    const wait = due ? readEvery : Math.max(200, within - since);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.read(), wait);
  }
}

export function hereText(q) {
  const { here } = q;
  switch (here.state) {
    case "none":
      return isClaimed(q) ? "no numbers yet" : "not attached";
    case "attached":
      return `attached, node ID ${number(here.node)}`;
    case "waiting":
      return here.place ? `waiting, place ${number(here.place)}` : "waiting";
    default:
      return here.why ? `${here.state}: ${here.why}` : here.state;
  }
}
