// The dashboard: a model of the cluster that the server keeps up to date, and parts that each draw some of it.

import { $, h, say, set, forgetInks, once, calm } from "./dom.js";
import { keepToken, hasToken, logIn, mixture } from "./ask.js";
import { clock, entryText, number, plural, rate, stateOf } from "./words.js";
import { follow } from "./stream.js";
import { Model } from "./model.js";
import { Quorum } from "./quorum.js";
import { Ring } from "./ring.js";
import { Nodes } from "./nodes.js";
import { Members } from "./members.js";
import { Sequencers } from "./sequencers.js";
import { Rates } from "./rates.js";
import { History } from "./history.js";
import { Inspect } from "./inspect.js";

const live = new Model();
let pointed = null; // the member that is pointed at
let kept = null; // the one that stays shown
let stop = () => {};
const dirty = { facts: true, peers: true, vitals: true, sequencers: null }; // null: all

const point = (id) => {
  if (id === pointed) return;
  pointed = id;
  show();
};
const keep = (id) => {
  kept = id === kept ? null : (id ?? null);
  show();
};
const announce = (text) => say($("say"), text);

const ring = new Ring($("ring"), $("dots"), { point, keep, soon, marked: () => pointed ?? kept });
const rates = new Rates({ told: () => drawVitals(), may: () => live.facts.position > 0 && live.doubt === null, known: () => live.facts.position > 0 });
const nodes = new Nodes({ point, keep, history: (owner) => rates.nodes.get(owner) });
const members = new Members({ goto: (name, node) => sequencers.open(name, node) });
const sequencers = new Sequencers({ point, keep, soon });
const quorum = new Quorum();
const inspect = new Inspect({ keep: (id) => keep(kept === id ? null : id) });
const history = new History({ changed: () => everything(), announce, soon });

live.when = (position) => history.when(position);

// shown is the model that the page shows: the present, or the past.
const shown = () => history.past ?? live;

function look(model) {
  return { self: model.facts.member, marked: pointed ?? kept, fresh: (id) => model.fresh(id), faint: model.members.size > much };
}

// drawProblems draws the line of what is wrong.
const few = 3;
function drawProblems() {
  const { problems, lost } = live;
  const all = [...problems];
  if (mixture() !== "") all.unshift({ level: "error", effect: mixture() });
  const key = JSON.stringify([all, lost]);
  if (key === problemsFor) return;
  problemsFor = key;
  const state = all.length === 0 ? (lost ? "doubt" : "good") : all[0].level === "error" ? "bad" : "warn";
  set($("problems"), "data-state", state);
  const row = (p) => h("li", { "data-state": p.level === "error" ? "bad" : "warn" }, h("span", { class: "lamp", "aria-hidden": "true" }),
    h("span", { title: p.detail ?? "" }, h("strong", {}, p.effect), p.since ? ` since ${clock(p.since)}` : "", p.cause ? `: ${p.cause}. ` : ". ",
      h("span", { class: "soft" }, p.do ?? "", " ", p.link ? h("a", { href: p.link, target: "_blank", rel: "noreferrer" }, "More") : ""),
      p.members?.length ? [" ", h("button", { type: "button", class: "link", onclick: () => keep(p.members[0]) }, "Show")] : ""));
  const rest = all.slice(few);
  const open = $("problems").querySelector("details")?.open;
  const focused = [...$("problems").querySelectorAll("button, summary")].indexOf(document.activeElement);
  $("problems").replaceChildren(
    all.length === 0 ? h("p", {}, h("span", { class: "lamp", "aria-hidden": "true" }), lost ? "Nothing was wrong when the connection was lost." : "Nothing is wrong.") : h("ul", {}, all.slice(0, few).map(row)),
    rest.length ? h("details", { open }, h("summary", {}, `and ${plural(rest.length, "other problem", "other problems")}`), h("ul", {}, rest.map(row))) : "");
  if (focused >= 0) $("problems").querySelectorAll("button, summary")[focused]?.focus();
}
let problemsFor;
addEventListener("mixed", drawProblems);

// drawVitals draws what changes with every reading of the pulses.
const drawVitals = once(() => {
  const model = shown();
  nodes.draw(model);
  nodes.mark(pointed, kept);
  const by = new Map();
  for (const [id, m] of live.members) {
    const rate = live.vitals.get(id)?.rate;
    if (rate !== undefined && live.fresh(id)) by.set(m.owner, (by.get(m.owner) ?? 0) + rate);
  }
  rates.now(by);
  say($("rate-now"), by.size || live.doubt !== null ? (by.size ? rate(rates.sum) : "–") : "–");
  const most = live.members.size;
  say($("rate-note"), most === 0 || (by.size === 0 && live.doubt !== null) ? "not known" : by.size === most ? "of the whole cluster" : `of ${number(by.size)} of ${plural(most, "node", "nodes")}`);
});

const draw = once(() => {
  const model = shown();
  drawFacts();
  if (dirty.peers) {
    ring.draw(model);
    drawVitals();
  } else if (dirty.vitals) drawVitals();
  inspect.draw(live);
  sequencers.live = live;
  sequencers.draw(model, look(model), dirty.peers ? null : (dirty.sequencers ?? null));
  show.now();
  Object.assign(dirty, { facts: false, peers: false, vitals: false, sequencers: new Set() });
});

// soon draws something: at once while there is little to draw, and else with the next beat, so that all changes since the
// last one cost the browser one frame.
const much = 64;
const owed = new Set();
function soon(what) {
  if (live.members.size > much) owed.add(what);
  else what();
}
function settle() {
  const now = [...owed];
  owed.clear();
  for (const what of now) what();
}

function everything() {
  Object.assign(dirty, { facts: true, peers: true, sequencers: null });
  draw();
}

// show draws the member that is pointed at or pinned.
const show = once(() => show.now());
show.now = () => {
  const model = shown();
  const one = pointed ?? kept ?? (model.facts.member || null);
  ring.show(pointed, kept);
  nodes.mark(pointed, kept);
  members.drawOne(model, one, kept !== null && one === kept);
  sequencers.mark(look(model));
};

function drawFacts() {
  const { facts, doubt } = live;
  const model = shown();
  quorum.draw(live.quorum);
  drawProblems();
  document.documentElement.toggleAttribute("data-doubt", doubt !== null);
  document.documentElement.toggleAttribute("data-may", live.may);
  const since = doubt ? `since ${clock(doubt)}` : "now";
  const states = [...live.members].map(([id, m]) => stateOf(id, m, live).kind);
  const count = (kind) => states.filter((k) => k === kind).length;
  const parts = [];
  if (live.joins.size) parts.push(`${number(live.joins.size)} joining`);
  const fresh = [...live.members.values()].filter((m) => m.state === "new").length;
  if (fresh && doubt === null) parts.push(`${number(fresh)} new`);
  if (count("bad")) parts.push(`${number(count("bad"))} not ready`);
  if (count("doubt")) parts.push(`${number(count("doubt"))} not confirmed`);
  const alone = live.members.size === 1 && live.members.has(facts.member);
  const nobody = live.members.size === 0;
  say($("ready"), live.lost ? "Not known" : facts.not_ready ? "Not ready" : "Ready");
  set($("tile-ready"), "data-state", live.lost ? "doubt" : facts.not_ready ? "bad" : "good");
  say($("ready-why"), live.lost ? since : facts.not_ready || "giving IDs");
  say($("members-count"), nobody && doubt !== null ? "–" : number(live.members.size));
  say($("members-note"), parts.join(", ") || (nobody ? (doubt === null ? "" : "not known") : alone ? "alone, ready" : "all ready"));
  const entry = history.latest;
  say($("position"), entry?.at ? history.timeOf(entry) : "not known");
  say($("position-note"), `${entry ? `${entryText(entry)} · ` : ""}position ${number(facts.position)}`);
  say($("store"), live.lost ? "Not known" : facts.store ? "Out of reach" : "Reachable");
  set($("tile-store"), "data-state", live.lost ? "doubt" : facts.store ? "bad" : "good");
  say($("store-why"), live.lost ? since : facts.store ? `${facts.store.answered ? `since ${clock(facts.store.answered)}: ` : ""}${facts.store.why ?? "no answer"}` : "it answered the last read");
  const self = live.members.get(facts.member);
  say($("node"), self?.owner ? self.owner : facts.member);
  document.title = `${live.problems.some((p) => p.level === "error") ? "✕ " : ""}firn · ${self?.owner || "dashboard"}`;
  const past = history.past;
  document.documentElement.toggleAttribute("data-past", Boolean(past));
  $("past").toggleAttribute("hidden", !past);
  if (past) {
    say($("past-text"), `At ${history.time()}`);
    say($("past-note"), `the cluster as it was, with ${plural(model.members.size, "member", "members")} (position ${number(past.facts.position)}). Problems, vital signs and rates are current.`);
  }
  for (const chip of document.querySelectorAll(".when")) {
    chip.toggleAttribute("hidden", !past);
    say(chip, past ? `at ${history.time()}` : "");
  }
}

// The connection.

let lost; // {why, again} while there is none

function state(s) {
  const was = lost;
  lost = s.live ? undefined : s;
  document.documentElement.toggleAttribute("data-lost", Boolean(lost));
  say($("link-text"), lost ? "Connection lost" : "Connected");
  set($("link"), "data-state", lost ? "bad" : "good");
  $("lost").hidden = !lost;
  if (lost) lost.since = was?.since ?? new Date();
  live.lost = lost ? Number(lost.since) : null;
  if (Boolean(was) !== Boolean(lost)) {
    rates.broken();
    everything();
    settle();
  }
  tick();
}

// tick is called each second: by a beat of the stream, so that one frame has all changes, or by a timer while no beat comes.
function tick() {
  history.tick();
  if (!lost) return;
  const left = Math.ceil((lost.again - Date.now()) / 1000);
  say($("lost"), `Connection lost (${lost.why}). This page shows the state at ${clock(lost.since)}; ${left > 0 ? `reconnecting in ${left} s` : "reconnecting"}.`);
}
setInterval(() => lost && tick(), 1000);

function connect() {
  stop();
  $("auth").hidden = true;
  $("forget").hidden = !hasToken();
  stop = follow({
    view(patch) {
      if (last) notLoggedIn(last);
      last = "";
      $("board").hidden = false;
      $("timeline").hidden = false;
      if (patch.reset) history.reset();
      const change = live.apply(patch);
      dirty.facts ||= change.facts;
      dirty.peers ||= change.peers;
      dirty.vitals ||= change.vitals;
      if (dirty.sequencers) for (const name of change.sequencers) dirty.sequencers.add(name);
      history.reach(live.facts.position, live);
      if (patch.names) history.redraw();
      if (history.past) drawFacts();
      else if (patch.reset) draw();
      else soon(draw);
    },
    beat(b) {
      rates.beat(b);
      tick();
      settle();
    },
    state,
    refused,
  });
}

// refused continues without the token if there was one, and else asks for one. Without tokens everybody may look.
let last = ""; // why the former token was refused
function refused(why) {
  if (hasToken()) {
    last = why.message;
    keepToken("");
    connect();
    return;
  }
  $("board").hidden = true;
  $("timeline").hidden = true;
  $("lost").hidden = true;
  $("auth").hidden = false;
  $("past").hidden = true;
  say($("link-text"), "Not authorized");
  set($("link"), "data-state", "bad");
  say($("auth-why"), last ? `The token was refused: ${last}.` : "");
  last = "";
  $("forget").hidden = true;
  $("token").focus();
}

$("auth-form").addEventListener("submit", (e) => {
  e.preventDefault();
  const token = $("token").value.trim();
  if (token === "") {
    say($("auth-why"), "Enter a token.");
    return;
  }
  keepToken(token);
  $("token").value = "";
  connect();
});
$("forget").addEventListener("click", () => {
  keepToken("");
  stop();
  connect();
});

// The theme: that of the system, unless the user has chosen one.

const themes = ["system", "light", "dark"];
function theme(name) {
  set(document.documentElement, "data-theme", name === "system" ? null : name);
  say($("theme-text"), name[0].toUpperCase() + name.slice(1));
  set($("theme"), "aria-label", `Theme: ${name === "system" ? "same as the system" : name}`);
  try {
    localStorage.setItem("firn.theme", name);
  } catch {
    // the choice is lost with the page
  }
  repaint();
}
function repaint() {
  forgetInks();
  everything();
  rates.redraw();
  history.redraw();
}
let chosen = "system";
try {
  chosen = localStorage.getItem("firn.theme") ?? "system";
} catch {
  // nothing can be stored here
}
$("theme").addEventListener("click", () => {
  chosen = themes[(themes.indexOf(chosen) + 1) % themes.length];
  theme(chosen);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
theme(themes.includes(chosen) ? chosen : "system");
document.documentElement.toggleAttribute("data-calm", calm());

// Login by the address that the node or firn cluster dashboard prints.

function notLoggedIn(why) {
  say($("login-why"), `${why[0].toUpperCase()}${why.slice(1)}.`);
  $("login").hidden = false;
}
$("login-close").addEventListener("click", () => {
  $("login").hidden = true;
});
async function enter() {
  const why = await logIn();
  $("login").hidden = true;
  if (why) notLoggedIn(why);
  connect();
}
addEventListener("hashchange", () => location.hash.startsWith("#login=") && enter());
enter();
