// IDs per second, computed from the counts of IDs that the server sends.

import { $, h, ink, sheet, say, once, set, whenSeen } from "./dom.js";
import { number, rate, plural } from "./words.js";

const kept = 300; // samples, one a second
const lines = 5; // beside the sum
const dashes = [[], [6, 4], [2, 3], [10, 3, 2, 3], [1, 4]];

export class Rates {
  constructor() {
    this.canvas = $("chart");
    this.samples = []; // {at, sum, by: Map}
    this.totals = new Map();
    this.redraw = whenSeen(this.canvas.parentElement, once(() => this.drawChart()));
    new ResizeObserver(() => this.redraw()).observe(this.canvas.parentElement);
    this.canvas.addEventListener("pointermove", (e) => {
      this.pointed = e.clientX - this.canvas.getBoundingClientRect().left;
      this.redraw();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.pointed = undefined;
      this.redraw();
    });
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
      this.samples.push({ at, sum, by });
      while (this.samples.length > kept) this.samples.shift();
    }
    this.at = at;
    this.totals = totals;
    this.draw();
  }

  // broken forgets the last counts: the next beat may come from another process.
  broken() {
    this.at = undefined;
  }

  draw() {
    const last = this.samples.at(-1);
    const total = [...this.totals.values()].reduce((a, b) => a + b, 0);
    say($("rate-now"), last ? rate(last.sum) : "–");
    say($("rate-note"), `${plural(total, "ID", "IDs")} given since the start`);
    say($("series-kind"), this.several ? "Node" : "Sequencer");
    this.names = [...this.totals.keys()].sort((a, b) => this.totals.get(b) - this.totals.get(a) || (a < b ? -1 : 1));
    const key = JSON.stringify(this.names);
    if (this.rowsFor !== key) {
      this.rowsFor = key;
      this.rows = this.names.map((name, i) => ({ name, speed: h("td"), count: h("td"), line: i < lines ? i : "rest" }));
      const none = h("tr", {}, h("td", { colspan: 3, class: "soft" }, "No IDs were requested since the process started."));
      $("series").replaceChildren(...(this.rows.length === 0 ? [none] : this.rows.map((r) =>
        h("tr", {}, h("th", { scope: "row" }, h("span", { class: "clip" }, h("i", { class: "dash", "data-line": r.line }), r.name)), r.speed, r.count))));
    }
    for (const r of this.rows) {
      say(r.speed, rate(last?.by.get(r.name) ?? 0));
      say(r.count, number(this.totals.get(r.name)));
    }
    this.redraw();
  }

  drawChart() {
    const width = this.canvas.parentElement.clientWidth - 2 * parseFloat(getComputedStyle(this.canvas.parentElement).paddingLeft);
    const height = 190;
    if (width <= 0) return;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const draw = sheet(this.canvas, width, height);
    const [left, right, top, bottom] = [46, 6, 10, 22];
    const most = nice(Math.max(1, ...this.samples.map((s) => s.sum)));
    const end = this.samples.at(-1)?.at ?? Date.now();
    const x = (at) => left + (width - left - right) * (1 - (end - at) / (kept * 1000));
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
    for (let m = 1; m <= 4; m++) draw.fillText(`${m} min`, x(end - m * 60000), height - 8);
    draw.textAlign = "right";
    draw.fillText("now", width - right, height - 8);
    if (this.samples.length > 1) this.drawLines(draw, x, y);
    this.drawPointed(draw, x, y, { left, right, top, bottom, width, height });
    const last = this.samples.at(-1);
    set(this.canvas, "aria-label", `IDs per second: now ${rate(last?.sum ?? 0)}, at most ${rate(Math.max(0, ...this.samples.map((s) => s.sum)))} in the last five minutes`);
  }

  drawLines(draw, x, y) {
    const path = (value) => {
      draw.beginPath();
      this.samples.forEach((s, i) => {
        const gap = i > 0 && s.at - this.samples[i - 1].at > 5000;
        if (i === 0 || gap) draw.moveTo(x(s.at), y(value(s)));
        else draw.lineTo(x(s.at), y(value(s)));
      });
    };
    draw.lineJoin = "round";
    path((s) => s.sum);
    draw.strokeStyle = ink("accent");
    draw.lineWidth = 2;
    draw.stroke();
    draw.lineTo(x(this.samples.at(-1).at), y(0));
    draw.lineTo(x(this.samples[0].at), y(0));
    draw.closePath();
    draw.globalAlpha = 0.12;
    draw.fillStyle = ink("accent");
    draw.fill();
    draw.globalAlpha = 1;
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
    const text = `${rate(s.sum)} /s at ${new Date(s.at).toLocaleTimeString("en-GB")}`;
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

// nice is a round number for the top of a scale.
function nice(n) {
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 5, 10].map((step) => step * power).find((v) => v >= n);
}
