// The log: its entries, and the way back to any time in it.

import { $, h, ink, sheet, say, set, once, whenSized } from "./dom.js";
import { ask, askJSON, Refusal } from "./ask.js";
import { clock, number, plural, entryText, kindOf } from "./words.js";
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
    this.known = false; // the log was read
    this.begins = 0; // the position before the first, whose value can still be looked at
    this.index = null; // where in the past, from 0 for the beginning; null: live
    this.at = null; // the time there, in milliseconds
    this.past = null; // the model there
    this.slider = $("slider");
    this.list = $("entries");
    this.redraw = once(() => this.draw());
    this.slider.addEventListener("input", () => {
      const at = Number(this.slider.value);
      this.go(this.entries.findLastIndex((e) => e.ms <= at) + 1, at);
    });
    $("step-back").addEventListener("click", () => this.step(-1));
    $("step-on").addEventListener("click", () => this.step(1));
    for (const id of ["live", "past-back"]) $(id).addEventListener("click", () => this.live());
    this.list.addEventListener("click", (e) => {
      const at = e.target.closest("li")?.dataset.at;
      if (at) this.goto(Number(at));
    });
    for (const element of [this.list, this.slider]) {
      element.addEventListener("keydown", (e) => {
        const step = { ArrowUp: 1, ArrowDown: -1, ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[e.key];
        if (step !== undefined) this.step(step);
        else if (e.key === "Home") this.go(0);
        else if (e.key === "End" || e.key === "Escape") this.live();
        else return;
        e.preventDefault();
      });
    }
    this.width = 0; // of the slider
    whenSized(this.slider, ({ width }) => {
      this.width = width;
      this.redraw();
    });
  }

  get last() {
    return this.entries.length;
  }

  // latest is the last entry.
  get latest() {
    return this.entries.at(-1);
  }

  // when tells when an entry was written; those of before the log are known by their positions only.
  when(position) {
    const e = this.entries.find((e) => e.position === position);
    return e?.at ? this.timeOf(e) : `position ${number(position)}`;
  }

  // timeOf is when an entry was written, for people: if its own time is wrong, the latest that it can have been.
  timeOf(e) {
    return `${this.wrong(e) ? "by " : ""}${clock(e.ms)}`;
  }

  // spread gives each entry its place on the slider: when it was written, as clocks.Order has it, or, if no entry tells its
  // time, its number.
  spread() {
    const told = this.entries.map((e) => (e.at ? Date.parse(e.at) : NaN));
    this.timed = told.some((at) => !Number.isNaN(at));
    const when = order(told, this.entries.map((e) => e.read));
    this.entries.forEach((e, i) => (e.ms = this.timed ? when[i] : i + 1));
  }

  // wrong says how the time of an entry contradicts the order of the log: "late clock", "clock ahead" or nothing.
  wrong(e) {
    const ahead = e.at ? Date.parse(e.at) - e.ms : 0;
    return ahead > 1000 ? "clock ahead" : ahead < -1000 ? "late clock" : "";
  }

  // from and to are the ends of the slider.
  get from() {
    return this.timed ? this.entries[0].ms - 1 : 0;
  }

  get to() {
    return this.timed ? Math.max(Date.now(), this.latest.ms) : this.last;
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
      this.asOf = answer.headers.get("Firn-Log-As-Of"); // from the node's memory, as the store does not answer; null: from the store
      const more = (await answer.text()).split("\n").filter((line) => line !== "").map((line) => JSON.parse(line)).filter((e) => e.position !== undefined);
      const kept = this.index === null ? null : this.positionOf(this.index);
      if (from === 0) [this.entries, this.begins, this.stale] = [[], 0, false];
      if (after !== null) {
        this.entries = this.entries.filter((e) => e.position > Number(after));
        this.begins = Number(after);
      }
      for (const e of more) e.read = Date.now();
      this.entries.push(...more);
      this.known = true;
      this.spread();
      if (kept !== null) this.index = Math.min(this.indexOf(kept), this.last);
    } catch (error) {
      if (!(error instanceof Refusal)) console.debug("the log can't be read at present", error);
    }
    this.reading = false;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.readOn();
    }, again);
    if (from === 0) {
      this.changed(); // when the last change was, and when members joined
      this.redraw();
    } else this.soon(this.redraw);
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
    this.at = null;
    this.past = null;
    this.failed = "";
    this.changed();
    this.redraw();
  }

  // go shows the cluster at an index of the log, or at a time before the next entry; at the end that is the present.
  go(index, at) {
    if (index >= this.last) {
      this.live();
      this.announce("live");
      return;
    }
    this.index = Math.max(0, index);
    this.at = at ?? (this.index === 0 ? this.from : this.entries[this.index - 1].ms);
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
    if (this.index !== null) this.announce(`${this.time()}: ${this.entryAt(this.index)}`);
  }

  // time is the time that is shown, for people.
  time() {
    if (this.index === null) return "Now";
    return this.timed ? clock(this.at) : `position ${number(this.positionOf(this.index))}`;
  }

  // tick moves the present on.
  tick() {
    if (!this.timed || document.hidden) return;
    if ((Date.now() - this.drawnTo) * this.width > this.drawnTo - this.from) this.redraw();
  }

  entryAt(index) {
    return index === 0 ? (this.known ? "before the first entry in the log" : "the log is not known yet") : entryText(this.entries[index - 1]);
  }

  draw() {
    const index = this.index ?? this.last;
    const to = (this.drawnTo = this.last === 0 ? 0 : this.to);
    set(this.slider, "min", this.last === 0 ? 0 : this.from);
    set(this.slider, "max", to);
    this.slider.value = this.at ?? to;
    const position = this.last === 0 ? (this.wanted ?? 0) : this.positionOf(index);
    const text = this.entryAt(index);
    set(this.slider, "data-position", position);
    set(this.slider, "aria-valuetext", `${this.time()}: ${text}`);
    say($("timeline-text"), this.failed || `${this.time()} · ${this.index === null ? "last: " : ""}${text} · position ${number(position)}`);
    set($("live"), "aria-pressed", this.index === null);
    $("step-back").disabled = index === 0;
    $("step-on").disabled = this.index === null;
    const asOf = this.asOf && this.model?.doubt != null ? `; from the node’s memory, as of ${clock(this.asOf)}` : "";
    say($("log-note"), this.last ? `${plural(this.last, "entry", "entries")}${this.entries[0].at ? ` since ${clock(this.entries[0].ms)}` : ""}${asOf}` : this.known ? "empty" : "not known: it can’t be read at present");
    this.drawList(index);
    this.drawMarks(index);
  }

  drawList(index) {
    const from = Math.max(0, Math.min(index - rows / 2, this.last - rows));
    const shown = this.entries.slice(from, from + rows).reverse();
    const here = this.index === null ? null : this.positionOf(index);
    const key = `${this.entries[from]?.position}/${shown[0]?.position}/${here}/${shown.map((e) => this.wrong(e)).join()}/${this.model?.named}`;
    if (this.listed === key) return;
    const moved = this.listedAt !== here;
    [this.listed, this.listedAt] = [key, here];
    const want = new Map(shown.map((e) => [e.position, e]));
    for (const [at, row] of this.rows) {
      if (want.has(at)) continue;
      row.remove();
      this.rows.delete(at);
    }
    let next = this.list.firstChild;
    for (const e of shown) {
      let row = this.rows.get(e.position);
      if (row?.dataset.wrong !== this.wrong(e) || row.told !== entryText(e)) { // what has come since may contradict its time, or name its nodes
        const former = row;
        row = this.row(e);
        this.rows.set(e.position, row);
        if (former) former.replaceWith(row);
        if (former === next) next = row;
      }
      if (row === next) next = next.nextSibling;
      else this.list.insertBefore(row, next);
      row.classList.toggle("here", e.position === here);
      row.classList.toggle("later", here !== null && e.position > here);
      set(row, "aria-current", e.position === here ? "step" : null);
    }
    if (!moved) return; // who reads further down goes on there
    const row = this.list.querySelector(".here");
    if (row) this.list.scrollTop += row.getBoundingClientRect().top - this.list.getBoundingClientRect().top - this.list.clientHeight / 3;
    else if (here === null) this.list.scrollTop = 0;
  }

  row(e) {
    const kind = kindOf(e);
    const at = e.at ? new Date(e.at) : null;
    const other = at && at.toDateString() !== new Date().toDateString();
    const text = entryText(e);
    const row = h("li", { "data-at": e.position, "data-wrong": this.wrong(e), class: kind },
      h("time", { class: "at", datetime: e.at, title: e.at }, at ? at.toLocaleTimeString("en-GB") : "–", other ? h("small", {}, at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })) : "", this.wrong(e) ? h("small", {}, this.wrong(e)) : ""), h("span", { class: "sign", "aria-hidden": "true" }, signs[kind]),
      h("span", { class: "words" }, text, h("code", {}, `${e.command ?? "unreadable"} · ${number(e.position)}`)));
    row.told = text;
    return row;
  }

  // drawMarks marks the entries along the slider, where they are in time, by their kinds.
  drawMarks(index) {
    const canvas = $("marks");
    const { width } = this;
    if (width === 0) return;
    const [height, thumb] = [20, 18];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const draw = sheet(canvas, width, height);
    const scale = this.last === 0 ? 0 : (width - thumb) / Math.max(this.drawnTo - this.from, 1);
    const kinds = { other: ["line", 5, 11], nodes: ["soft", 4, 10], comes: ["accent", 2, 9], goes: ["bad", 10, 19] };
    const paths = new Map();
    this.entries.forEach((e, i) => {
      const kind = (e.kind ??= kindOf(e));
      const key = `${kind} ${i < index}`;
      if (!paths.has(key)) paths.set(key, [kind, i < index, new Path2D()]);
      const [, top, bottom] = kinds[kind];
      paths.get(key)[2].rect(thumb / 2 + (e.ms - this.from) * scale - 1, top, 2, bottom - top);
    });
    for (const [kind, before, path] of paths.values()) {
      draw.fillStyle = ink(kinds[kind][0]);
      draw.globalAlpha = before ? 1 : 0.35;
      draw.fill(path);
    }
  }
}

const soonest = 60e3; // how far beyond the time of reading it a time is believed

// order is clocks.Order of the server in JavaScript: when entries were written, by the times in them, NaN if unknown, and by
// when they were read. An unknown time becomes that of the entry before, or of the first.
function order(told, read) {
  const later = (at, i) => at > read[i] + soonest;
  const bounded = 2 * told.filter(later).length <= told.filter((at) => !Number.isNaN(at)).length;
  const ends = [];
  const before = [];
  told.forEach((at, i) => { // the longest run that never goes back
    if (Number.isNaN(at) || (bounded && later(at, i))) return;
    let n = ends.length;
    if (n > 0 && at < told[ends[n - 1]]) n = ends.findIndex((end) => told[end] > at);
    before[i] = ends[n - 1];
    ends[n] = i;
  });
  const believed = [];
  for (let i = ends.at(-1); i !== undefined; i = before[i]) believed.push(i); // the last one first
  const when = [...told];
  let next = Infinity;
  let n = 0;
  for (let i = told.length - 1; i >= 0; i--) {
    if (believed[n] === i) n++;
    else if (!Number.isNaN(told[i])) when[i] = Math.max(Math.min(told[i], next, bounded ? read[i] : Infinity), told[believed[n]] ?? -Infinity);
    else continue;
    next = when[i];
  }
  let last = when.find((at) => !Number.isNaN(at));
  return when.map((at) => (last = Number.isNaN(at) ? last : at));
}
