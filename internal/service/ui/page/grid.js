// The node IDs of a sequencer as a grid of cells, drawn on a canvas: a thousand elements would cost more than they show.

import { ink, sheet } from "./dom.js";
import { colourOf, number } from "./words.js";

const most = 4096; // cells

// The states of a cell.
export const Free = 0; // never used
export const Used = 1; // was used, and nobody has it
export const Held = 2; // a member has it; how far it may go is not known
export const Full = 3; // and time is written down ahead
export const Low = 4; // less than half of what is usual
export const Past = 5; // none: its holder can make no IDs
export const Closing = 6; // who has it was taken out, and uses up what is written down
export const Doubt = 7; // a member has it, and nothing of that is confirmed now

const stale = 15000; // ms: horizons that were read longer ago are not confirmed

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

  // state is the state of a node ID, whose holder is confirmed to live or not.
  state(node, holder, now, fresh) {
    const n = this.byNode.get(node);
    const lead = this.lead(node, now);
    if (!holder) {
      if (!n) return Free;
      return n.live && lead > 0 ? Closing : Used;
    }
    if (!fresh || now - this.read > stale) return Doubt;
    if (!n || !n.live || lead === undefined) return Held;
    if (lead <= 0) return Past;
    return lead < this.usual / 2 ? Low : Full;
  }
}

// shapeOf arranges the node IDs of a sequencer for a width: in rows of cells, {from, to, top}, and bars for stretches of
// rows in which no node ID was ever used, which are free too.
export function shapeOf(q, horizons, width) {
  const least = width < 500 ? 9.5 : 13;
  let columns = 8;
  while (columns < q.capacity && width / (columns * 2) >= least && columns < 128) columns *= 2;
  columns = Math.min(columns, q.capacity);
  const pitch = Math.min(30, Math.floor((width / columns) * 2) / 2);
  const used = new Set([...q.nodes.keys(), ...(horizons?.byNode.keys() ?? [])].map((node) => Math.floor(node / columns)));
  const busy = [...used].sort((a, b) => a - b);
  const shape = { columns, pitch, width: columns * pitch, height: 0, rows: [], hidden: Math.max(0, busy.length - most / columns) };
  let next = 0;
  const add = (until, free) => {
    shape.rows.push({ from: next * columns, to: until * columns - 1, free, top: shape.height });
    shape.height += free ? Math.max(pitch, bar) : pitch;
    next = until;
  };
  for (const row of busy.slice(0, most / columns)) {
    if (row > next) add(row, row - next > 1); // one row is no stretch
    add(row + 1, false);
  }
  if (shape.hidden === 0 && next * columns < q.capacity) add(q.capacity / columns, q.capacity / columns - next > 1);
  return shape;
}

const bar = 24; // the least height of a bar

// rowOf is the row of a node ID.
export const rowOf = (shape, node) => shape.rows.find((row) => row.from <= node && node <= row.to);

// cell draws one cell in an empty square.
function cell(draw, x, y, size, { state, colour, self, frame, faint }, gap) {
  const round = Math.min(4, size / 4);
  const shape = (style, colour, build) => {
    draw[`${style}Style`] = ink(colour);
    draw.beginPath();
    build();
    draw[style]();
  };
  const dot = (colour, radius) => shape("fill", colour, () => draw.arc(x + size / 2, y + size / 2, radius, 0, 7));
  const solid = state === Full || state === Held;
  const edge = (colour, width) => {
    draw.lineWidth = width;
    shape("stroke", colour, () => draw.roundRect(x + width / 2, y + width / 2, size - width, size - width, round));
  };
  draw.globalAlpha = solid && faint && !self && !frame ? 0.45 : 1;
  shape("fill", solid ? colour : "cell", () => draw.roundRect(x, y, size, size, round));
  draw.globalAlpha = 1;
  if (state === Used) dot("used", Math.max(1.2, size / 7));
  if (state === Low) {
    shape("fill", colour, () => draw.roundRect(x, y + size / 2, size, size / 2, [0, 0, round, round]));
    edge(colour, Math.max(1, size / 12));
  }
  if (state === Doubt) {
    draw.setLineDash([size / 5, size / 8]);
    edge("used", Math.max(1, size / 12));
    draw.setLineDash([]);
    dot(colour, Math.max(1.5, size / 5));
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

// drawGrid draws the cells. Look is {self, marked, cursor, fresh, faint}: the member of this node, the member whose cells
// stand out, the node ID at the cursor or -1, whether a member is confirmed, and whether others are drawn faintly, as there
// are many. It returns the number of cells of each kind.
export function drawGrid(canvas, drawn, shape, q, horizons, now, look) {
  const { columns, pitch } = shape;
  const draw = drawn.begin(canvas, shape.width, shape.height, `${q.name} ${q.created} ${shape.rows.map((row) => `${row.from}${row.free}`)}`);
  const gap = pitch > 16 ? 3 : pitch > 8 ? 2 : 1;
  const counts = new Array(8).fill(0);
  for (const row of shape.rows) {
    if (row.free) {
      counts[Free] += row.to - row.from + 1;
      if (drawn.changed(row.from, look.cursor === row.from)) drawBar(draw, row, shape, look.cursor === row.from);
      continue;
    }
    for (let node = row.from; node <= row.to; node++) {
      const holder = q.nodes.get(node);
      const fresh = holder && look.fresh(holder);
      const state = horizons ? horizons.state(node, holder, now, fresh) : holder ? (fresh ? Held : Doubt) : Free;
      counts[state]++;
      const colour = holder ? colourOf(holder) : "";
      const self = holder !== undefined && holder === look.self;
      const frame = node === look.cursor ? "accent" : holder !== undefined && holder === look.marked ? "ink" : "";
      if (!drawn.changed(node, `${state}${colour}${self}${frame}`)) continue;
      const x = (node % columns) * pitch;
      draw.clearRect(x, row.top, pitch, pitch);
      cell(draw, x + gap / 2, row.top + gap / 2, pitch - gap, { state, colour, self, frame, faint: look.faint }, gap);
    }
  }
  return counts;
}

// drawBar draws a stretch of free node IDs.
function drawBar(draw, row, { width, pitch }, chosen) {
  const height = Math.max(pitch, bar);
  draw.clearRect(0, row.top, width, height);
  draw.beginPath();
  draw.roundRect(1, row.top + 2, width - 2, height - 4, 5);
  draw.fillStyle = ink("cell");
  draw.fill();
  if (chosen) {
    draw.lineWidth = 2;
    draw.strokeStyle = ink("accent");
    draw.stroke();
  }
  draw.fillStyle = ink("soft");
  draw.font = "12px system-ui, sans-serif";
  draw.textBaseline = "middle";
  draw.fillText(`${number(row.from)} – ${number(row.to)}: free, never used`, 10, row.top + height / 2 + 0.5, width - 20);
}

// drawSmall draws all cells as one small picture, or the first ones.
export function drawSmall(canvas, drawn, q, look, size) {
  const count = Math.min(q.capacity, most);
  const draw = drawn.begin(canvas, size, size, `${q.name} ${q.created} ${count}`);
  const columns = Math.ceil(Math.sqrt(count));
  const pitch = size / columns;
  const gap = pitch > 6 ? 1.5 : pitch > 3 ? 0.6 : 0;
  for (let node = 0; node < count; node++) {
    const holder = q.nodes.get(node);
    const colour = holder === undefined ? "cell" : look.fresh(holder) ? colourOf(holder) : "used";
    if (!drawn.changed(node, colour)) continue;
    const [x, y] = [(node % columns) * pitch, Math.floor(node / columns) * pitch];
    draw.globalAlpha = holder !== undefined && look.faint && holder !== look.self ? 0.45 : 1;
    draw.clearRect(x, y, pitch, pitch);
    draw.fillStyle = ink(colour);
    draw.fillRect(x + gap / 2, y + gap / 2, pitch - gap, pitch - gap);
  }
  draw.globalAlpha = 1;
}
