// The dashboard: a model of the cluster that the server keeps up to date, and parts that each draw some of it.

import { $, say, set, forgetInks, once, calm } from "./dom.js";
import { keepToken, hasToken, logIn } from "./ask.js";
import { number, plural, hostOf } from "./words.js";
import { follow } from "./stream.js";
import { Model } from "./model.js";
import { Quorum } from "./quorum.js";
import { Ring } from "./ring.js";
import { Members } from "./members.js";
import { Sequencers } from "./sequencers.js";
import { Rates } from "./rates.js";
import { History } from "./history.js";
import { Decode } from "./decode.js";

const live = new Model();
let pointed = null; // the member that is pointed at
let kept = null; // the one that stays shown
let stop = () => {};
const dirty = { facts: true, peers: true, sequencers: null }; // null: all

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

const ring = new Ring($("ring"), $("dots"), { point, keep, soon });
const members = new Members({ point, keep, goto: (name, node) => sequencers.open(name, node) });
const sequencers = new Sequencers({ point, keep });
const quorum = new Quorum();
const rates = new Rates();
const decode = new Decode({ keep: (id) => keep(kept === id ? null : id) });
const history = new History({ changed: () => everything(), announce, soon });

// shown is the model that the page shows: the present, or the past.
const shown = () => history.past ?? live;

// hueOf gives each of a few members a colour of its own, the same in the past; of many, only this node's stands out.
const hues = new Map();
function hueOf(model) {
  if (model.members.size > 8) return (id) => (id === model.facts.member ? "self" : "other");
  const ring = model.ring;
  for (const id of ring) {
    if (hues.has(id)) continue;
    const taken = new Set([...ring, ...live.members.keys()].map((other) => hues.get(other)));
    const all = [0, 1, 2, 3, 4, 5, 6, 7];
    hues.set(id, all.find((n) => !taken.has(n)) ?? all.find((n) => !ring.some((other) => hues.get(other) === n)));
    if (hues.size > 1000) hues.delete(hues.keys().next().value);
  }
  return (id) => (model.members.has(id) ? `m${hues.get(id)}` : "other");
}

function look(model) {
  return { hue: hueOf(model), self: model.facts.member, marked: pointed ?? kept };
}

const draw = once(() => {
  const model = shown();
  const hue = hueOf(model);
  drawFacts();
  if (dirty.peers) {
    ring.draw(model, hue);
    members.draw(model, hue);
    decode.draw(live);
  }
  sequencers.live = live;
  sequencers.draw(model, look(model), dirty.peers ? null : (dirty.sequencers ?? null));
  show.now();
  Object.assign(dirty, { facts: false, peers: false, sequencers: new Set() });
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
  members.drawOne(model, one, hueOf(model), kept !== null && one === kept);
  sequencers.mark(look(model));
};

function drawFacts() {
  const { facts } = live;
  const model = shown();
  quorum.draw(live.quorum);
  const dead = [...live.members.values()].filter((m) => m.life === "dead").length;
  const parts = [];
  if (live.joins.size) parts.push(`${number(live.joins.size)} joining`);
  if (dead) parts.push(`${number(dead)} not alive`);
  say($("ready"), facts.not_ready ? "Not ready" : "Ready");
  set($("tile-ready"), "data-state", facts.not_ready ? "bad" : "good");
  say($("ready-why"), facts.not_ready || "giving IDs");
  say($("members-count"), number(live.members.size));
  say($("members-note"), parts.join(", ") || (live.members.size === 1 ? "alone" : "all in the ring"));
  say($("position"), number(facts.position));
  say($("position-note"), `${plural(facts.entries, "entry", "entries")} since the log began`);
  say($("store"), facts.no_store ? "Unreachable" : "Reachable");
  set($("tile-store"), "data-state", facts.no_store ? "bad" : "good");
  say($("store-why"), facts.no_store || "it answered the last read");
  const self = live.members.get(facts.member);
  say($("node"), self?.owner ? self.owner : facts.member);
  document.title = `${facts.not_ready ? "✕ " : ""}firn · ${hostOf(self?.owner) || "dashboard"}`;
  const past = history.past;
  document.documentElement.toggleAttribute("data-past", Boolean(past));
  $("past").hidden = !past;
  if (past) {
    say($("past-text"), `At position ${number(past.facts.position)}`);
    say($("past-note"), `the state of the cluster then: ${plural(model.members.size, "member", "members")}. Health and rates are current.`);
  }
  for (const chip of document.querySelectorAll(".when")) {
    chip.hidden = !past;
    say(chip, past ? `at position ${number(past.facts.position)}` : "");
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
  if (lost) {
    if (!was) lost.since = new Date();
    lost.since ??= was.since;
    rates.broken();
    settle();
  }
  tick();
}

function tick() {
  if (!lost) return;
  const left = Math.ceil((lost.again - Date.now()) / 1000);
  say($("lost"), `Connection lost (${lost.why}). This page shows the state at ${lost.since.toLocaleTimeString("en-GB")}; ${left > 0 ? `reconnecting in ${left} s` : "reconnecting"}.`);
}
setInterval(tick, 1000);

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
      if (dirty.sequencers) for (const name of change.sequencers) dirty.sequencers.add(name);
      history.reach(live.facts.position, live);
      if (history.past) drawFacts();
      else if (patch.reset) draw();
      else soon(draw);
    },
    beat(b) {
      rates.beat(b);
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
