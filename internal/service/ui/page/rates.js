// IDs per second: of the cluster in the last hour, which the nodes keep, and of this process in the last five minutes, computed
// from the counts that the server sends.

import { $, h, svg, ink, sheet, say, once, set, whenSeen, whenSized } from "./dom.js";
import { askJSON } from "./ask.js";
import { clock, number, rate } from "./words.js";

const minute = 60e3;
const lines = 5; // beside the sum
const dashes = [[], [6, 4], [2, 3], [10, 3, 2, 3], [1, 4]];

// The charts: what they cover, the time without a sample that is a gap, and how long the last one may come after the one before:
// a minute is read up to a minute after it was written.
const hour = { covers: 60 * minute, gap: 1.5 * minute, late: 3 * minute, tick: 10 * minute, heads: ["Node", "now, /s", "mean, /s"], text: "in the last hour", note: "Of all nodes, by the minute." };
const recent = { covers: 5 * minute, gap: 5e3, late: 5e3, tick: minute, heads: ["Sequencer", "now, /s", "given"], text: "in the last five minutes", note: "Given by this process." };

export class Rates {
  constructor({ told, may, known }) {
    this.known = known; // tells whether a node may remember it
    this.told = told; // called when the last hour was read
    this.may = may; // tells whether it can be read
    this.canvas = $("chart");
    this.recent = []; // samples of this process, one a second: {at, sum, by: Map}
    this.hour = []; // samples of the cluster, one a minute: {at, sum, by: Map, ready, members}
    this.nodes = new Map(); // owner: {at, rate, ready, offset}, of the last hour
    this.totals = new Map();
    this.chart = hour;
    this.redraw = whenSeen(this.canvas.parentElement, once(() => this.drawChart()));
    whenSized(this.canvas.parentElement, ({ width }) => {
      if (this.width === width) return;
      this.width = width;
      this.redraw();
    });
    this.canvas.addEventListener("pointermove", (e) => {
      this.pointed = e.clientX - this.canvas.getBoundingClientRect().left;
      this.redraw();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.pointed = undefined;
      this.redraw();
    });
    for (const [id, chart] of [["rates-hour", hour], ["rates-recent", recent]]) {
      $(id).addEventListener("click", () => {
        this.chart = chart;
        this.draw();
      });
    }
    document.addEventListener("visibilitychange", () => this.read());
  }

  // read reads the last hour, once a minute while the page is seen.
  async read() {
    if (document.hidden || this.reading || !(this.asOf ? this.may() : this.known()) || Date.now() - (this.asked ?? 0) < minute - 1000) return;
    [this.reading, this.asked] = [true, Date.now()];
    try {
      this.take(await askJSON("/api/v1/cluster/history"));
    } catch {
      // what was read stays, with its times
    }
    this.reading = false;
  }

  take({ at, minutes, cluster, nodes }) {
    this.asOf = Date.parse(at);
    const times = minutes.map((at) => Date.parse(at));
    this.nodes = new Map(nodes.map((n) => [n.owner, { at: times.at(-1), times, rate: n.rate, ready: n.ready, offset: n.offset_ns }]));
    this.hour = times.map((at, i) => ({ at, sum: cluster.rate[i], ready: cluster.ready[i], members: cluster.members[i], by: new Map(nodes.map((n) => [n.owner, n.rate[i]])) })).filter((s) => s.sum !== null);
    this.means = new Map(nodes.map((n) => [n.owner, mean(n.rate)]));
    this.draw();
    this.told();
  }

  // beat takes the counts that the server sends once a second. There is a line for each node, or, of one node, for each sequencer.
  beat({ unix_ms: at, given }) {
    const totals = new Map();
    const several = given.length > 1;
    for (const node of given) {
      for (const [name, count] of Object.entries(node.given)) {
        const key = several ? node.name : name;
        totals.set(key, (totals.get(key) ?? 0) + count);
      }
      if (several && !totals.has(node.name)) totals.set(node.name, 0);
    }
    this.several = several;
    if (this.at !== undefined && at > this.at) {
      const by = new Map();
      let sum = 0;
      for (const [name, count] of totals) {
        const made = Math.max(0, count - (this.totals.get(name) ?? 0));
        const speed = (made * 1000) / (at - this.at);
        by.set(name, speed);
        sum += speed;
      }
      this.recent.push({ at, sum, by });
      while (this.recent[0].at < at - recent.covers) this.recent.shift();
    }
    this.at = at;
    this.totals = totals;
    this.read();
    if (this.chart === recent) this.draw();
  }

  // broken forgets the last counts: the next beat may come from another process.
  broken() {
    this.at = undefined;
  }

  // now takes what all nodes that are confirmed give at present, by owner.
  now(by) {
    this.by = by;
    this.sum = [...by.values()].reduce((a, b) => a + b, 0);
    if (this.chart === hour) this.draw();
  }

  draw() {
    const cluster = this.chart === hour;
    set($("rates-hour"), "aria-pressed", cluster);
    set($("rates-recent"), "aria-pressed", !cluster);
    say($("rates-note"), `${this.chart.note}${cluster && this.asOf && !this.may() ? ` As of ${clock(this.asOf)}.` : ""}`);
    const [counts, last] = cluster ? [this.means ?? new Map(), this.by] : [this.totals, this.recent.at(-1)?.by];
    const names = [...new Set([...counts.keys(), ...(cluster ? (last?.keys() ?? []) : [])])];
    const size = (name) => counts.get(name) ?? last?.get(name) ?? 0;
    names.sort((a, b) => size(b) - size(a) || (a < b ? -1 : 1));
    this.names = cluster ? names.slice(0, lines) : names;
    const key = JSON.stringify([cluster, this.several, this.names, this.may()]);
    if (this.rowsFor !== key) {
      this.rowsFor = key;
      [$("series-kind"), $("series-now"), $("series-all")].forEach((head, i) => say(head, i === 0 && !cluster && this.several ? "Node" : this.chart.heads[i]));
      this.rows = this.names.map((name, i) => ({ name, speed: h("td"), count: h("td"), line: i < lines ? i : "rest" }));
      const none = h("tr", {}, h("td", { colspan: 3, class: "soft" }, cluster ? this.may() ? "No node has told its rate yet." : "Not known at present." : "No IDs were requested since the process started."));
      $("series").replaceChildren(...(this.rows.length === 0 ? [none] : this.rows.map((r) =>
        h("tr", {}, h("th", { scope: "row", title: r.name }, h("span", { class: "clip" }, h("i", { class: "dash", "data-line": r.line }), r.name)), r.speed, r.count))));
    }
    for (const r of this.rows) {
      say(r.speed, cluster && last?.get(r.name) === undefined ? "–" : rate(last?.get(r.name) ?? 0));
      say(r.count, cluster ? (counts.has(r.name) ? rate(counts.get(r.name)) : "–") : number(counts.get(r.name)));
    }
    this.redraw();
  }

  drawChart() {
    const { width } = this;
    const height = 190;
    if (!width) return;
    const { covers, tick, text } = this.chart;
    this.samples = this.chart === hour ? this.hour : this.recent;
    if (this.chart === hour && this.by) this.samples = [...this.hour, { at: Date.now(), sum: this.sum, by: this.by }];
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const draw = sheet(this.canvas, width, height);
    const [left, right, top, bottom] = [46, 6, 10, 24];
    const most = nice(Math.max(1, ...this.samples.map((s) => s.sum)));
    const end = this.samples.at(-1)?.at ?? Date.now();
    const x = (at) => left + (width - left - right) * (1 - (end - at) / covers);
    const y = (v) => top + (height - top - bottom) * (1 - v / most);
    draw.font = "11px system-ui, sans-serif";
    draw.textBaseline = "middle";
    draw.strokeStyle = ink("line");
    draw.fillStyle = ink("soft");
    draw.lineWidth = 1;
    for (let i = 0; i <= 4; i += 2) {
      const v = (most * i) / 4;
      draw.beginPath();
      draw.moveTo(left, Math.round(y(v)) + 0.5);
      draw.lineTo(width - right, Math.round(y(v)) + 0.5);
      draw.stroke();
      draw.textAlign = "right";
      draw.fillText(rate(v), left - 8, y(v));
    }
    draw.textAlign = "center";
    for (let at = Math.floor(end / tick) * tick; x(at) > left + 14; at -= tick) {
      if (x(at) < width - right - 14) draw.fillText(new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }), x(at), height - 7);
    }
    for (const s of this.samples) { // nodes that were not ready
      if (s.ready === undefined || s.ready >= s.members) continue;
      draw.fillStyle = ink("bad");
      draw.fillRect(x(s.at - minute), y(0) + 1, Math.max(2, x(minute) - x(0)), 4);
    }
    if (this.samples.length > 1) this.drawLines(draw, x, y);
    this.drawPointed(draw, x, y, { left, right, top, bottom, width, height });
    const last = this.samples.at(-1);
    set(this.canvas, "aria-label", `IDs per second: now ${rate(last?.sum ?? 0)}, at most ${rate(Math.max(0, ...this.samples.map((s) => s.sum)))} ${text}`);
  }

  drawLines(draw, x, y) {
    const stretches = []; // without gaps
    this.samples.forEach((s, i) => {
      const last = i === this.samples.length - 1;
      if (i === 0 || s.at - this.samples[i - 1].at > this.chart[last ? "late" : "gap"]) stretches.push([]);
      stretches.at(-1).push(s);
    });
    const path = (value) => {
      draw.beginPath();
      for (const stretch of stretches) stretch.forEach((s, i) => draw[i === 0 ? "moveTo" : "lineTo"](x(s.at), y(value(s))));
    };
    draw.lineJoin = "round";
    draw.beginPath();
    for (const stretch of stretches) {
      draw.moveTo(x(stretch[0].at), y(0));
      for (const s of stretch) draw.lineTo(x(s.at), y(s.sum));
      draw.lineTo(x(stretch.at(-1).at), y(0));
    }
    draw.globalAlpha = 0.12;
    draw.fillStyle = ink("accent");
    draw.fill();
    draw.globalAlpha = 1;
    path((s) => s.sum);
    draw.strokeStyle = ink("accent");
    draw.lineWidth = 2;
    draw.stroke();
    if (this.names.length < 2) return;
    this.names.slice(0, lines).forEach((name, i) => {
      path((s) => s.by.get(name) ?? 0);
      draw.setLineDash(dashes[i]);
      draw.strokeStyle = ink(`m${i}`);
      draw.lineWidth = 1.5;
      draw.stroke();
    });
    draw.setLineDash([]);
  }

  drawPointed(draw, x, y, { left, right, top, bottom, width, height }) {
    if (this.pointed === undefined || this.samples.length === 0) return;
    const s = this.samples.reduce((best, s) => (Math.abs(x(s.at) - this.pointed) < Math.abs(x(best.at) - this.pointed) ? s : best));
    draw.strokeStyle = ink("soft");
    draw.beginPath();
    draw.moveTo(x(s.at), top);
    draw.lineTo(x(s.at), height - bottom);
    draw.stroke();
    draw.fillStyle = ink("accent");
    draw.beginPath();
    draw.arc(x(s.at), y(s.sum), 4, 0, 7);
    draw.fill();
    const text = `${rate(s.sum)} /s at ${clock(s.at)}${s.ready < s.members ? `, ${number(s.ready)} of ${number(s.members)} ready` : ""}`;
    draw.font = "600 12px system-ui, sans-serif";
    const w = draw.measureText(text).width + 16;
    const bx = Math.min(Math.max(x(s.at) - w / 2, left), width - right - w);
    draw.fillStyle = ink("card");
    draw.strokeStyle = ink("line");
    draw.beginPath();
    draw.roundRect(bx, top, w, 22, 6);
    draw.fill();
    draw.stroke();
    draw.fillStyle = ink("ink");
    draw.textAlign = "left";
    draw.fillText(text, bx + 8, top + 11.5);
  }
}

// mean is that of the values that are known; undefined: there are none.
function mean(values) {
  const known = values.filter((v) => v !== null);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : undefined;
}

// spark draws the last hour of a node, in a picture of 72 by 22: its rate, and when it was not ready.
export function spark(picture, { times, rate, ready }) {
  const most = Math.max(1, ...rate);
  const x = across(times);
  const off = ready.map((is, i) => (is === false ? `M${(x(i) - 1).toFixed(1)} 19h2v3h-2z` : ""));
  picture.replaceChildren(svg("path", { class: "line", d: along(rate, x, (v) => 17 - (15 * v) / most) }), svg("path", { class: "off", d: off.join("") }));
}

const least = 20e6; // ns: clocks that differ by less look the same

// sparkClock draws how far the clock of a node was from the others' in the last hour: ahead is above the middle.
export function sparkClock(picture, { times, offset }) {
  const most = Math.max(least, ...offset.map(Math.abs));
  picture.replaceChildren(svg("path", { class: "zero", d: "M1 11h70" }), svg("path", { class: "line", d: along(offset, across(times), (v) => 11 - (9 * v) / most) }));
}

// across places the minutes of the last hour.
const across = (times) => (i) => 71 - ((times.length - 1 - i) * 70) / 59;

// along is the line through values, with a gap where one is not known.
const along = (values, x, y) => values.map((v, i) => (v === null ? "" : `${(values[i - 1] ?? null) === null ? "M" : "L"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`)).join("");

// nice is a round number for the top of a scale.
function nice(n) {
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 5, 10].map((step) => step * power).find((v) => v >= n);
}
