// The ring of members as a picture. A few members are elements that move; many are dots on a canvas behind the picture, so
// that a thousand cost no more than a few.

import { svg, set, say, calm, ink, sheet, whenSeen } from "./dom.js";
import { clock, colourOf, number, plural, short } from "./words.js";

const named = 24; // as many have their names beside them
const single = 64; // as many are elements of their own

const at = (angle, radius) => [radius * Math.sin(angle), -radius * Math.cos(angle)];
const point = (p) => `${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export class Ring {
  constructor(picture, canvas, { point, keep, soon, marked }) {
    this.picture = picture;
    this.canvas = canvas;
    this.paint = whenSeen(picture, () => this.placed && this.many(this.model, this.placed));
    new ResizeObserver(this.paint).observe(picture);
    this.tell = point;
    this.keep = keep;
    this.soon = soon;
    this.marked = marked; // tells the member that is pointed at or pinned, also before that is drawn
    this.spots = new Map(); // where everybody is, members and joiners: id -> [x, y]
    this.order = [];
    this.drawn = new Map(); // the elements of those that are drawn one by one
    this.layers = Object.fromEntries(["edges", "links", "peers", "marks", "middle"].map((name) => {
      const layer = svg("g", { class: `ring-${name}` });
      picture.append(layer);
      return [name, layer];
    }));
    picture.prepend(svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      svg("path", { d: "M1 1 7 4 1 7", class: "tip" }))));
    this.count = svg("text", { class: "count", y: -4 });
    this.note = svg("text", { class: "note", y: 26 });
    this.note2 = svg("text", { class: "note", y: 46 });
    this.layers.middle.append(this.count, this.note, this.note2);
    this.listen();
  }

  listen() {
    const p = this.picture;
    p.addEventListener("pointermove", (e) => this.tell(this.nearest(e)));
    p.addEventListener("pointerleave", () => this.tell(null));
    p.addEventListener("click", (e) => this.keep(this.nearest(e)));
    p.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 32, PageUp: -32 }[e.key];
      const here = this.order.indexOf(this.marked() ?? this.self);
      const n = this.order.length;
      if (step !== undefined && n > 0) this.tell(this.order[(((here + step) % n) + n) % n]);
      else if (e.key === "Home") this.tell(this.self);
      else if (e.key === "Enter" || e.key === " ") this.keep(this.marked());
      else if (e.key === "Escape") this.keep(null);
      else return;
      e.preventDefault();
    });
    p.addEventListener("blur", () => this.tell(null));
  }

  // nearest is the member at the pointer.
  nearest(event) {
    const from = this.picture.getScreenCTM();
    if (!from) return null;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(from.inverse());
    let best = null;
    let least = this.members > single ? 14 : 34;
    for (const [id, [px, py]] of this.spots) {
      const away = Math.hypot(px - x, py - y);
      if (away < least) [best, least] = [id, away];
    }
    return best;
  }

  draw(model) {
    const ring = model.ring;
    this.model = model;
    this.placed = ring;
    const before = this.spots;
    this.self = model.members.has(model.facts.member) || model.joins.has(model.facts.member) ? model.facts.member : null;
    this.members = ring.length;
    this.spots = new Map();
    this.radius = ring.length > named ? 246 : 204;
    this.place(model, ring);
    this.order = [...ring, ...model.joins.keys()];
    this.picture.classList.toggle("crowded", ring.length > single);
    this.one(model, ring);
    set(this.canvas, "data-dots", ring.length > single ? ring.length : 0);
    this.paint();
    this.middle(model, ring);
    if (ring.length > single) this.ripple(before);
    this.mark();
    set(this.picture, "aria-label", `Ring of ${plural(ring.length, "member", "members")}${model.joins.size ? `, ${number(model.joins.size)} about to join` : ""}`);
  }

  // place places the members. If the ring is too short for all, they zigzag between rows.
  place(model, ring) {
    const n = ring.length;
    const rows = Math.max(1, Math.ceil((n * 13) / (2 * Math.PI * this.radius)));
    const period = Math.max(1, 2 * (rows - 1));
    const gap = Math.min(20, 144 / rows);
    ring.forEach((id, i) => {
      const step = i % period;
      const row = step < rows ? step : period - step;
      this.spots.set(id, at((2 * Math.PI * i) / n, this.radius + 14 * (rows > 1) - row * gap));
    });
    const places = new Map(ring.map((id, i) => [id, i]));
    for (const [id, join] of model.joins) {
      const i = places.get(join.target) ?? 0;
      const outside = n > named ? 32 : 56;
      this.spots.set(id, at((2 * Math.PI * (i - 0.5)) / Math.max(n, 2), this.radius + outside));
    }
  }

  // one draws the members that are elements, and joiners.
  one(model, ring) {
    const few = ring.length <= single;
    const want = new Map();
    if (few) ring.forEach((id, i) => want.set(id, { peer: model.members.get(id), angle: (2 * Math.PI * i) / ring.length }));
    if (model.joins.size <= single) for (const [id, join] of model.joins) want.set(id, { join });
    for (const [id, g] of this.drawn) {
      if (want.has(id)) continue;
      this.drawn.delete(id);
      g.classList.add("gone");
      setTimeout(() => g.remove(), calm() ? 0 : 700);
    }
    const size = ring.length <= 8 ? 19 : ring.length <= named ? 14 : 8;
    for (const [id, what] of want) {
      let g = this.drawn.get(id);
      if (g?.dataset.joins !== String(Boolean(what.join))) {
        g?.remove();
        g = this.shape(id, what.join);
      }
      const [x, y] = this.spots.get(id);
      g.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
      if (what.join) {
        g.setAttribute("class", `joiner ${what.join.phase}${what.join.state === "gone" ? " dead" : ""}${id === this.self ? " self" : ""}`);
        this.name(g, id, "", [x, y], 15, ring.length <= named);
      } else {
        g.setAttribute("class", `peer ${what.peer.state === "gone" && model.doubt === null ? "dead" : model.fresh(id) ? "alive" : "doubt"}${id === this.self ? " self" : ""}`);
        g.style.setProperty("--hue", colourOf(id));
        set(g.querySelector(".dot"), "r", size);
        set(g.querySelector(".halo"), "r", size + 5);
        this.name(g, id, ring.length <= 12 ? (what.peer.owner ?? "") : "", [x, y], size + 12, ring.length <= named);
      }
    }
    this.edges(few ? ring : [], size);
    this.links(model);
  }

  shape(id, join) {
    const g = svg("g", { "data-id": id, "data-joins": Boolean(join) },
      join ? svg("path", { d: "M0-9 9 0 0 9-9 0z", class: "diamond" }) : [svg("circle", { class: "halo" }), svg("circle", { class: "dot" }), svg("path", { d: "M-5-5 5 5M5-5-5 5", class: "cross" })],
      svg("text", { class: "name" }), svg("text", { class: "host" }));
    this.layers.peers.append(g);
    this.drawn.set(id, g);
    return g;
  }

  // name writes the name beside a shape, on the outer side.
  name(g, id, host, [x, y], away, shown) {
    const [name, under] = g.querySelectorAll("text");
    const length = Math.hypot(x, y) || 1;
    const side = Math.abs(x) < 40 ? "middle" : x > 0 ? "start" : "end";
    const dx = (x / length) * away;
    const dy = (y / length) * away + (side === "middle" ? (y > 0 ? 12 : host ? -16 : -2) : host ? -2 : 4);
    for (const [text, words, down] of [[name, shown ? short(id) : "", 0], [under, shown ? cut(host, 14) : "", 15]]) {
      say(text, words);
      set(text, "text-anchor", side);
      set(text, "x", dx.toFixed(1));
      set(text, "y", (dy + down).toFixed(1));
    }
  }

  // edges draws who watches whom, if members are elements.
  edges(ring, size) {
    const n = ring.length;
    const key = `${n}/${ring.join()}`;
    if (this.edgesFor === key) return;
    this.edgesFor = key;
    const pad = (size + 9) / this.radius;
    const arcs = n < 2 ? [] : ring.map((_, i) => {
      const from = (2 * Math.PI * i) / n + pad;
      const to = (2 * Math.PI * (i + 1)) / n - pad;
      return `M${point(at(from, this.radius))}A${this.radius} ${this.radius} 0 0 1 ${point(at(to, this.radius))}`;
    });
    this.layers.edges.replaceChildren(...arcs.map((d) => svg("path", { d, class: "edge", "marker-end": n <= named ? "url(#tip)" : null })));
  }

  // links draws the target of each joiner.
  links(model) {
    let d = "";
    for (const [id, join] of model.joins) {
      if (this.spots.has(join.target)) d += `M${point(this.spots.get(id))}L${point(this.spots.get(join.target))}`;
    }
    if (this.linksFor === d) return;
    this.linksFor = d;
    this.layers.links.replaceChildren(...(d ? [svg("path", { d, class: "link" })] : []));
  }

  // many draws many members as dots, and a line from each to the one that it watches.
  many(model, ring) {
    if (ring.length <= single) {
      this.canvas.hidden = true;
      return;
    }
    this.canvas.hidden = false;
    const { width, height } = this.picture.getBoundingClientRect();
    if (width === 0) return;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const draw = sheet(this.canvas, width, height);
    const scale = Math.min(width / 640, height / 600);
    draw.translate(width / 2, height / 2);
    draw.scale(scale, scale);
    draw.strokeStyle = ink("line");
    draw.lineWidth = 1;
    draw.beginPath();
    for (const id of ring) draw.lineTo(...this.spots.get(id));
    draw.closePath();
    draw.stroke();
    draw.lineWidth = 2;
    for (const id of ring) {
      const dead = model.members.get(id)?.state === "gone";
      const hollow = dead || !model.fresh(id);
      draw.beginPath(); // a path of its own for each is a lot cheaper than one for all
      draw.arc(...this.spots.get(id), dead ? 5 : hollow ? 3.5 : 4.5, 0, 7);
      draw.fillStyle = hollow ? ink("card") : ink(colourOf(id));
      draw.globalAlpha = hollow ? 1 : 0.6;
      draw.fill();
      draw.globalAlpha = 1;
      draw.strokeStyle = ink(dead ? "bad" : "used");
      if (hollow) draw.stroke();
    }
    draw.fillStyle = ink("warn");
    if (model.joins.size > single) {
      for (const id of model.joins.keys()) {
        const [x, y] = this.spots.get(id) ?? [0, 0];
        draw.fillRect(x - 2.5, y - 2.5, 5, 5);
      }
    }
  }

  middle(model, ring) {
    const dead = [...model.members.values()].filter((m) => m.state === "gone").length;
    say(this.count, ring.length === 0 && model.doubt !== null ? "–" : number(ring.length));
    say(this.note, ring.length === 1 ? "member, alone" : "members");
    const more = [];
    if (model.joins.size > 0) more.push(`${number(model.joins.size)} joining`);
    if (dead > 0) more.push(`${number(dead)} gone`);
    const doubt = ring.filter((id) => !model.fresh(id) && model.members.get(id).state !== "new").length - dead;
    if (model.doubt !== null && !model.past) more.splice(0, more.length, `not confirmed${model.doubt ? ` since ${clock(model.doubt)}` : ""}`);
    else if (doubt > 0) more.push(`${number(doubt)} not confirmed`);
    say(this.note2, more.join(", "));
  }

  // ripple shows for a moment where one of many members has come or gone. Nothing moves, as that would cost too much.
  ripple(before) {
    if (before.size === 0) return;
    const changed = [];
    for (const [id, spot] of this.spots) if (!before.has(id)) changed.push([spot, false]);
    for (const [id, spot] of before) if (!this.spots.has(id)) changed.push([spot, true]);
    if (changed.length > 12) return;
    for (const [[cx, cy], gone] of changed) {
      const circle = svg("circle", { cx, cy, r: 11, class: gone ? "ripple went" : "ripple came" });
      this.layers.marks.append(circle);
      this.soon(() => circle.remove());
    }
  }

  // show marks the members that are pointed at and pinned.
  show(pointed, kept) {
    this.pointed = pointed;
    this.kept = kept;
    this.mark();
  }

  mark() {
    for (const [id, g] of this.drawn) {
      g.classList.toggle("pointed", id === this.pointed);
      g.classList.toggle("kept", id === this.kept);
    }
    for (const old of this.layers.marks.querySelectorAll(".spot")) old.remove();
    for (const [id, kind] of [[this.self, "self"], [this.kept, "kept"], [this.pointed, "pointed"]]) {
      const spot = this.spots.get(id);
      if (!spot || this.drawn.has(id)) continue;
      this.layers.marks.append(svg("circle", { cx: spot[0], cy: spot[1], r: 8, class: `spot ${kind}` }));
    }
  }
}

