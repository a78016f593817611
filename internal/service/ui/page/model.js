// The cluster as the page knows it, from the stream or at a position of the log.

import { colourAll, isClaimed, names } from "./words.js";

export class Model {
  constructor() {
    this.facts = { member: "", position: 0, entries: 0, not_ready: "" }; // and store: {as_of, answered, why} while it does not answer
    this.members = new Map(); // id: {watches, joined, state, fresh, owner, as_of, version, addresses, since, why}
    this.joins = new Map(); // id: {target, phase, and as of a member}
    this.sequencers = new Map(); // name: {definition, capacity, ..., here, nodes: Map, waiting, rules: {allocation, share, drained, reservations}}
    this.vitals = new Map(); // id: {rate, given, offset, left, rtt}, rounded
    this.gave = new Map(); // id: when it was last known to give IDs, in milliseconds
    this.problems = []; // {level, kind, effect, since, cause, do, link, detail, members}, worst first
    this.may = false; // who looks may change things
    this.when = (position) => `position ${position}`; // that an entry was written, for people
    this.lost = null; // since when there is no connection to the server
    this.layouts = {}; // name: {definition, capacity}, that IDs can be read as
    this.quorum = null; // {self, waiting, majority, machines}; null: there is none
    this.owners = new Map(); // id: owner, of those who are gone too
    this.named = 0; // how often the name of a member has changed
    this.past = false;
    this.index = null; // of the ring, until it changes
    this.held = null; // who has what, until it changes
  }

  // doubt is since when nothing is confirmed, in milliseconds, 0 if that is not known; null: it is confirmed.
  get doubt() {
    return this.lost ?? (this.facts.store ? Date.parse(this.facts.store.as_of) || 0 : null);
  }

  // fresh tells whether a member is confirmed to live, now or at that position.
  fresh(id) {
    if (!this.past && this.doubt !== null && (this.lost !== null || id !== this.facts.member)) return false; // a node knows of itself
    return this.past || (this.members.get(id) ?? this.joins.get(id))?.fresh === true;
  }

  // apply applies a patch to the model, and returns what has changed.
  apply(patch) {
    const dirty = { facts: false, peers: false, vitals: false, sequencers: new Set() };
    if (patch.reset) {
      this.members.clear();
      this.joins.clear();
      this.vitals.clear();
      for (const name of this.sequencers.keys()) dirty.sequencers.add(name);
      this.sequencers.clear();
      dirty.peers = true;
    }
    if (patch.facts) {
      dirty.peers ||= patch.facts.member !== this.facts.member || !patch.facts.store !== !this.facts.store;
      this.facts = patch.facts;
      dirty.facts = true;
    }
    if (patch.quorum !== undefined || patch.reset) {
      this.quorum = patch.quorum ?? null;
      dirty.facts = true;
    }
    if (patch.layouts) this.layouts = patch.layouts;
    if (patch.may !== undefined) this.may = patch.may;
    if (patch.problems !== undefined) {
      this.problems = patch.problems ?? [];
      dirty.facts = true;
    }
    for (const [id, signs] of Object.entries(patch.vitals ?? {})) {
      if (signs?.rate > 0 || this.vitals.get(id)?.rate > 0) this.gave.set(id, Date.now());
      if (signs === null) this.vitals.delete(id);
      else this.vitals.set(id, signs);
      dirty.vitals = true;
    }
    for (const [map, changes] of [[this.members, patch.members], [this.joins, patch.joins]]) {
      for (const [id, value] of Object.entries(changes ?? {})) {
        if (value === null) {
          map.delete(id);
          this.gave.delete(id);
        }
        else map.set(id, value);
        if (value?.owner) this.remember(id, value.owner);
        dirty.peers = true;
      }
    }
    for (const [name, change] of Object.entries(patch.sequencers ?? {})) {
      dirty.sequencers.add(name);
      if (change === null) this.sequencers.delete(name);
      else this.change(name, change);
    }
    if (patch.reset) names.clear();
    for (const [id, name] of Object.entries(patch.names ?? {})) {
      if (name === null) names.delete(id);
      else names.set(id, name);
      this.named++;
    }
    if (dirty.peers) {
      this.index = null;
      colourAll([...this.members].sort(([a, m], [b, n]) => m.joined - n.joined || (a < b ? -1 : 1)).map(([id]) => id));
    }
    this.held = null;
    return dirty;
  }

  // remember keeps the owner of an ID, to show the past.
  remember(id, owner) {
    this.owners.delete(id);
    this.owners.set(id, owner);
    if (this.owners.size > 5000) this.owners.delete(this.owners.keys().next().value);
  }

  change(name, change) {
    let q = this.sequencers.get(name);
    if (change.origin || !q) {
      q = { ...change.origin, name, here: { state: "none" }, nodes: new Map(), waiting: [] };
      this.sequencers.set(name, q);
    }
    if (change.here) q.here = change.here;
    if (change.waiting) q.waiting = change.waiting;
    if (change.rules) q.rules = change.rules;
    if (q.given > 0) q.gave = Date.now(); // until now
    if (change.given !== undefined) q.given = change.given; // IDs per second; null: unknown
    if (q.given > 0) q.gave = Date.now();
    for (const [node, member] of Object.entries(change.nodes ?? {})) {
      if (member === null) q.nodes.delete(Number(node));
      else q.nodes.set(Number(node), member);
    }
  }

  // names are the names of the sequencers, in order.
  names() {
    return [...this.sequencers.keys()].sort();
  }

  // ring lists the members so that each watches the next, from the oldest on.
  get ring() {
    return this.indexed().ring;
  }

  // heldBy are the node IDs of a member as [sequencer, node]; [sequencer, -1] if it waits for one.
  heldBy(id) {
    if (this.held) return this.held.get(id) ?? [];
    const all = [];
    for (const name of this.names()) {
      const q = this.sequencers.get(name);
      for (const [node, holder] of q.nodes) if (holder === id) all.push([name, node]);
      if (q.waiting.includes(id)) all.push([name, -1]);
    }
    return all;
  }

  // indexHeld makes heldBy fast for all members.
  indexHeld() {
    if (this.held) return;
    this.held = new Map();
    const add = (id, what) => (this.held.has(id) ? this.held.get(id).push(what) : this.held.set(id, [what]));
    for (const name of this.names()) {
      const q = this.sequencers.get(name);
      for (const [node, id] of q.nodes) add(id, [name, node]);
      for (const id of q.waiting) add(id, [name, -1]);
    }
  }

  watcherOf(id) {
    return this.indexed().watchers.get(id);
  }

  indexed() {
    if (this.index) return this.index;
    const watchers = new Map();
    let first;
    const since = (id) => this.members.get(id).order ?? this.members.get(id).joined;
    for (const [id, m] of this.members) {
      if (m.watches) watchers.set(m.watches, id);
      if (first === undefined || since(id) < since(first)) first = id;
    }
    const ring = [];
    const seen = new Set();
    for (let id = first; id !== undefined && !seen.has(id) && this.members.has(id); id = this.members.get(id).watches) {
      seen.add(id);
      ring.push(id);
    }
    for (const id of this.members.keys()) if (!seen.has(id)) ring.push(id); // there are none, if the server is right
    this.index = { ring, watchers, places: new Map(ring.map((id, i) => [id, i])) };
    return this.index;
  }
}

const power = (n) => 2 ** Math.ceil(Math.log2(Math.max(n, 1)));

// pastOf is the model at a position, from the server's answer {position, value}. What the value lacks comes from the live
// model and from the entries that created the sequencers.
export function pastOf(at, answer, live, entries) {
  const m = new Model();
  const v = answer.value;
  m.past = true;
  m.when = live.when;
  m.facts = { ...live.facts, position: at };
  v.members.forEach((id, i) => {
    const now = live.members.get(id);
    m.members.set(id, { watches: v.pairs[id], joined: now?.joined, order: i, owner: live.owners.get(id) });
  });
  for (const phase of ["prepared", "accepted"]) {
    for (const [id, target] of Object.entries(v[phase])) m.joins.set(id, { target, phase, owner: live.owners.get(id) });
  }
  for (const [name, q] of Object.entries(v.sequencers)) {
    const nodes = new Map(Object.entries(q.nodes).map(([node, id]) => [Number(node), id]));
    const created = entries.findLast((e) => e.command === "create-sequencer" && e.args.sequencer === name && e.position <= at);
    const now = live.sequencers.get(name);
    const definition = created?.args.definition ?? now?.definition;
    const capacity = isClaimed({ definition }) ? 0 : definition ? power(definition.nodes) : power(Math.max(0, ...nodes.keys()) + 1);
    m.sequencers.set(name, { name, definition, capacity, created: created?.position ?? now?.created, nodes, waiting: q.waiting, reservations: Object.entries(q.reserved ?? {}).map(([purpose, those]) => ({ for: purpose, nodes: those })) });
  }
  return m;
}
