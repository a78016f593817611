// The node IDs of a sequencer as a grid of cells, drawn on a canvas: a thousand elements would cost more than they show.

import { ink, sheet } from "./dom.js";

const most = 4096; // cells; of more node IDs those are shown that somebody has or had

// The states of a cell.
export const Free = 0; // never used
export const Used = 1; // was used, and nobody has it
export const Held = 2; // a member has it; how far it may go is not known
export const Full = 3; // and time is written down ahead
export const Low = 4; // less than half of what is usual
export const Past = 5; // none: its holder can make no IDs
export const Closing = 6; // who has it was taken out, and uses up what is written down

// Horizons are those of one sequencer, read from the server at intervals.
export class Horizons {
  constructor() {
    this.byNode = new Map();
    this.read = 0; // when, by this machine's clock
    this.usual = 0; // how far ahead the holders write, at the most
  }

  // take keeps an answer that came at a time of this machine's clock.
  take(answer, now) {
    this.byNode = new Map(answer.nodes.map((n) => [n.node, n]));
    this.skew = answer.unix_ms - now;
    this.read = now;
    const leads = answer.nodes.filter((n) => n.live && n.horizon_ms).map((n) => n.horizon_ms - answer.unix_ms).sort((a, b) => a - b);
    this.usual = Math.max(this.usual, leads[leads.length >> 1] ?? 0);
  }

  // lead is how far a node ID's horizon is ahead, in milliseconds; undefined: unknown.
  lead(node, now) {
    const n = this.byNode.get(node);
    return n?.horizon_ms === undefined ? undefined : n.horizon_ms - (now + this.skew);
  }

  state(node, holder, now) {
    const n = this.byNode.get(node);
    const lead = this.lead(node, now);
    if (!holder) {
      if (!n) return Free;
      return n.live && lead > 0 ? Closing : Used;
    }
    if (!n || !n.live || lead === undefined) return Held;
    if (lead <= 0) return Past;
    return lead < this.usual / 2 ? Low : Full;
  }
}

// cellsOf lists the node IDs of a sequencer that are shown.
export function cellsOf(q, horizons) {
  if (q.capacity <= most) return Array.from({ length: q.capacity }, (_, i) => i);
  return [...new Set([...q.nodes.keys(), ...(horizons?.byNode.keys() ?? [])])].sort((a, b) => a - b).slice(0, most);
}

// shapeOf is the number of columns, and their size, for a width.
export function shapeOf(count, width) {
  const least = width < 500 ? 9.5 : 13;
  let columns = 8;
  while (columns < count && width / (columns * 2) >= least && columns < 128) columns *= 2;
  columns = Math.min(columns, Math.max(count, 1));
  const pitch = Math.min(30, Math.floor((width / columns) * 2) / 2);
  return { columns, pitch, rows: Math.ceil(count / columns) };
}

// cell draws one cell in an empty square.
function cell(draw, x, y, size, { state, colour, self, frame }, gap) {
  const round = Math.min(4, size / 4);
  const shape = (style, colour, build) => {
    draw[`${style}Style`] = ink(colour);
    draw.beginPath();
    build();
    draw[style]();
  };
  const dot = (colour, radius) => shape("fill", colour, () => draw.arc(x + size / 2, y + size / 2, radius, 0, 7));
  const solid = state === Full || state === Held;
  shape("fill", solid ? colour : "cell", () => draw.roundRect(x, y, size, size, round));
  if (state === Used) dot("used", Math.max(1.2, size / 7));
  if (state === Low) {
    draw.lineWidth = Math.max(1, size / 12);
    shape("fill", colour, () => draw.roundRect(x, y + size / 2, size, size / 2, [0, 0, round, round]));
    shape("stroke", colour, () => draw.roundRect(x + draw.lineWidth / 2, y + draw.lineWidth / 2, size - draw.lineWidth, size - draw.lineWidth, round));
  }
  if (state === Past || state === Closing) {
    draw.lineWidth = Math.max(1.4, size / 9);
    shape("stroke", state === Past ? "bad" : "used", () => {
      draw.roundRect(x + draw.lineWidth / 2, y + draw.lineWidth / 2, size - draw.lineWidth, size - draw.lineWidth, round);
      draw.moveTo(x + size * 0.25, y + size * 0.75);
      draw.lineTo(x + size * 0.75, y + size * 0.25);
    });
  }
  if (self) dot(solid ? "card" : "ink", Math.max(1.3, size / 6));
  if (frame) {
    draw.lineWidth = 2;
    shape("stroke", frame, () => draw.roundRect(x - gap / 2 + 1, y - gap / 2 + 1, size + gap - 2, size + gap - 2, 4));
  }
}

// Drawn remembers what is on a canvas, so that only changes are drawn.
export class Drawn {
  // begin returns the context of the canvas. "what" is everything that changes the look of unchanged cells.
  begin(canvas, width, height, what) {
    const key = `${what} ${width} ${height} ${devicePixelRatio} ${ink("ink")}`;
    if (this.key !== key) {
      this.key = key;
      this.cells = [];
      this.draw = sheet(canvas, width, height);
    }
    return this.draw;
  }

  // changed tells whether the look of a cell has changed.
  changed(i, look) {
    if (this.cells[i] === look) return false;
    this.cells[i] = look;
    return true;
  }
}

// drawGrid draws the cells. Look is {self, marked, cursor, hue}: the member of this node, the member whose cells stand out,
// and the index of the cursor or -1. It returns the number of cells of each kind.
export function drawGrid(canvas, drawn, cells, shape, q, horizons, now, look) {
  const { columns, pitch, rows } = shape;
  const draw = drawn.begin(canvas, columns * pitch, rows * pitch, `${q.name} ${q.created} ${cells.length}`);
  const gap = pitch > 16 ? 3 : pitch > 8 ? 2 : 1;
  const counts = new Array(7).fill(0);
  cells.forEach((node, i) => {
    const holder = q.nodes.get(node);
    const state = horizons ? horizons.state(node, holder, now) : holder ? Held : Free;
    counts[state]++;
    const colour = holder ? look.hue(holder) : "";
    const self = holder !== undefined && holder === look.self;
    const frame = i === look.cursor ? "accent" : holder !== undefined && holder === look.marked ? "ink" : "";
    if (!drawn.changed(i, `${state}${colour}${self}${frame}`)) return;
    const [x, y] = [(i % columns) * pitch, Math.floor(i / columns) * pitch];
    draw.clearRect(x, y, pitch, pitch);
    cell(draw, x + gap / 2, y + gap / 2, pitch - gap, { state, colour, self, frame }, gap);
  });
  return counts;
}

// drawSmall draws all cells as one small picture.
export function drawSmall(canvas, drawn, q, look, size) {
  const count = Math.min(q.capacity, most);
  const draw = drawn.begin(canvas, size, size, `${q.name} ${q.created} ${count}`);
  const columns = Math.ceil(Math.sqrt(count));
  const pitch = size / columns;
  const gap = pitch > 6 ? 1.5 : pitch > 3 ? 0.6 : 0;
  const cells = q.capacity <= most ? null : cellsOf(q);
  for (let i = 0; i < count; i++) {
    const holder = q.nodes.get(cells ? cells[i] : i);
    const colour = holder === undefined ? "cell" : look.hue(holder);
    if (!drawn.changed(i, colour)) continue;
    const [x, y] = [(i % columns) * pitch, Math.floor(i / columns) * pitch];
    draw.fillStyle = ink(colour);
    draw.fillRect(x + gap / 2, y + gap / 2, pitch - gap, pitch - gap);
  }
}
