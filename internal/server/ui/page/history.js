// The log: its entries, and the way back to any position in it.

import { $, h, ink, sheet, say, set, once } from "./dom.js";
import { ask, askJSON, Refusal } from "./ask.js";
import { number, plural, entryText, kindOf } from "./words.js";
import { pastOf } from "./model.js";

const rows = 60; // entries that are listed around the position
const again = 1000; // how often the log is read on, at most
const signs = { comes: "+", goes: "−", nodes: "◆", other: "·" };

export class History {
  constructor({ changed, announce, soon }) {
    this.changed = changed;
    this.announce = announce;
    this.soon = soon;
    this.rows = new Map(); // of the list, by position
    this.entries = []; // that are kept, ascending
    this.begins = 0; // the position before the first, whose value can still be looked at
    this.index = null; // where in the past, from 0 for the beginning; null: live
    this.past = null; // the model there
    this.slider = $("slider");
    this.list = $("entries");
    this.redraw = once(() => this.draw());
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    $("step-back").addEventListener("click", () => this.step(-1));
    $("step-on").addEventListener("click", () => this.step(1));
    for (const id of ["live", "past-back"]) $(id).addEventListener("click", () => this.live());
    this.list.addEventListener("click", (e) => {
      const at = e.target.closest("li")?.dataset.at;
      if (at) this.goto(Number(at));
    });
    this.list.addEventListener("keydown", (e) => {
      const step = { ArrowUp: 1, ArrowDown: -1, ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[e.key];
      if (step !== undefined) this.step(step);
      else if (e.key === "Home") this.go(0);
      else if (e.key === "End" || e.key === "Escape") this.live();
      else return;
      e.preventDefault();
    });
    this.slider.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.live();
    });
    new ResizeObserver(() => this.redraw()).observe(this.slider);
  }

  get last() {
    return this.entries.length;
  }

  positionOf(index) {
    return index === 0 ? this.begins : this.entries[index - 1].position;
  }

  // reach reads the log up to a position that the server has reached.
  reach(position, model) {
    this.model = model;
    this.wanted = position;
    this.readOn();
  }

  async readOn() {
    const read = this.stale ? -1 : (this.entries.at(-1)?.position ?? -1);
    if (this.reading || this.timer || read >= this.wanted) return;
    this.reading = true;
    const from = read + 1;
    try {
      const answer = await ask(`/api/v1/cluster/log?from=${from}`);
      const after = answer.headers.get("Firn-Log-Begins-After");
      const more = (await answer.text()).split("\n").filter((line) => line !== "").map((line) => JSON.parse(line)).filter((e) => e.position !== undefined);
      const kept = this.index === null ? null : this.positionOf(this.index);
      if (from === 0) [this.entries, this.begins, this.stale] = [[], 0, false];
      if (after !== null) {
        this.entries = this.entries.filter((e) => e.position > Number(after));
        this.begins = Number(after);
      }
      this.entries.push(...more);
      if (kept !== null) this.index = Math.min(this.indexOf(kept), this.last);
    } catch (error) {
      if (!(error instanceof Refusal)) console.debug("the log can't be read at present", error);
    }
    this.reading = false;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.readOn();
    }, again);
    if (from === 0) this.redraw();
    else this.soon(this.redraw);
  }

  // reset makes the page read the whole log again: the server may be another one, or behind the former.
  reset() {
    this.stale = true;
  }

  indexOf(position) {
    let index = 0;
    while (index < this.last && this.entries[index].position <= position) index++;
    return index;
  }

  goto(position) {
    this.go(this.indexOf(position));
  }

  step(by) {
    this.go((this.index ?? this.last) + by);
  }

  live() {
    this.index = null;
    this.past = null;
    this.failed = "";
    this.changed();
    this.redraw();
  }

  // go shows the cluster at an index of the log; at the end that is the present.
  go(index) {
    if (index >= this.last) {
      this.live();
      this.announce("live");
      return;
    }
    this.index = Math.max(0, index);
    this.redraw();
    this.load();
  }

  async load() {
    if (this.loading) return; // the latest wish is looked at when this has come
    this.loading = true;
    for (let done; this.index !== null && done !== this.positionOf(this.index); ) {
      done = this.positionOf(this.index);
      try {
        const answer = await askJSON(`/api/v1/cluster/value?at=${done}`);
        if (this.index === null) break;
        this.past = pastOf(done, answer, this.model, this.entries);
        this.failed = "";
      } catch (error) {
        this.failed = error.message;
      }
      this.changed();
    }
    this.loading = false;
    this.redraw();
    if (this.index !== null) this.announce(`position ${number(this.positionOf(this.index))}: ${this.entryAt(this.index)}`);
  }

  entryAt(index) {
    return index === 0 ? "before the first entry in the log" : entryText(this.entries[index - 1]);
  }

  draw() {
    const index = this.index ?? this.last;
    set(this.slider, "max", this.last);
    if (Number(this.slider.value) !== index) this.slider.value = index;
    const at = this.last === 0 ? (this.wanted ?? 0) : this.positionOf(index);
    const text = this.entryAt(index);
    set(this.slider, "aria-valuetext", `${this.index === null ? "live, " : ""}position ${number(at)}: ${text}`);
    say($("timeline-text"), this.failed || `${number(at)} of ${number(this.wanted ?? at)} · ${text}`);
    set($("live"), "aria-pressed", this.index === null);
    $("step-back").disabled = index === 0;
    $("step-on").disabled = this.index === null;
    say($("log-note"), this.last ? `${plural(this.last, "entry", "entries")} in the log, from position ${number(this.begins + (this.begins > 0))} on` : "empty");
    this.drawList(index);
    this.drawMarks(index);
  }

  drawList(index) {
    const from = Math.max(0, Math.min(index - rows / 2, this.last - rows));
    const shown = this.entries.slice(from, from + rows).reverse();
    const here = this.index === null ? null : this.positionOf(index);
    const key = `${this.entries[from]?.position}/${shown[0]?.position}/${here}`;
    if (this.listed === key) return;
    this.listed = key;
    const want = new Map(shown.map((e) => [e.position, e]));
    for (const [at, row] of this.rows) {
      if (want.has(at)) continue;
      row.remove();
      this.rows.delete(at);
    }
    let next = this.list.firstChild;
    for (const e of shown) {
      let row = this.rows.get(e.position);
      if (!row) {
        row = this.row(e);
        this.rows.set(e.position, row);
      }
      if (row === next) next = next.nextSibling;
      else this.list.insertBefore(row, next);
      row.classList.toggle("here", e.position === here);
      row.classList.toggle("later", here !== null && e.position > here);
      set(row, "aria-current", e.position === here ? "step" : null);
    }
    const row = this.list.querySelector(".here");
    if (row) this.list.scrollTop += row.getBoundingClientRect().top - this.list.getBoundingClientRect().top - this.list.clientHeight / 3;
    else if (here === null) this.list.scrollTop = 0;
  }

  row(e) {
    const kind = kindOf(e);
    return h("li", { "data-at": e.position, class: kind },
      h("span", { class: "at" }, number(e.position)), h("span", { class: "sign", "aria-hidden": "true" }, signs[kind]),
      h("span", { class: "words" }, entryText(e), h("code", {}, e.command ?? "unreadable")));
  }

  // drawMarks marks the kinds of entries along the slider.
  drawMarks(index) {
    const canvas = $("marks");
    const width = this.slider.clientWidth;
    if (width === 0) return;
    const [height, thumb] = [20, 18];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const draw = sheet(canvas, width, height);
    const step = (width - thumb) / Math.max(this.last, 1);
    const kinds = { other: ["line", 5, 11], nodes: ["soft", 4, 10], comes: ["accent", 2, 9], goes: ["bad", 10, 19] };
    const paths = new Map();
    this.entries.forEach((e, i) => {
      const kind = (e.kind ??= kindOf(e));
      const key = `${kind} ${i < index}`;
      if (!paths.has(key)) paths.set(key, [kind, i < index, new Path2D()]);
      const [, top, bottom] = kinds[kind];
      paths.get(key)[2].rect(thumb / 2 + (i + 1) * step - 1, top, Math.max(1, Math.min(2, step - 0.5)), bottom - top);
    });
    for (const [kind, before, path] of paths.values()) {
      draw.fillStyle = ink(kinds[kind][0]);
      draw.globalAlpha = before ? 1 : 0.35;
      draw.fill(path);
    }
  }
}
