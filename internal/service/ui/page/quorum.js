// The machines that keep the store, if the nodes keep it themselves.

import { $, h, say } from "./dom.js";
import { bytes, number, plural, span } from "./words.js";

const slowSync = 50; // ms
const farClock = 1000; // ms

const badge = (text, kind) => h("span", { class: `badge ${kind ?? ""}` }, text);

export class Quorum {
  constructor() {
    this.card = $("quorum");
    this.list = $("machines");
  }

  // draw shows the quorum; null hides it.
  draw(quorum) {
    this.card.toggleAttribute("hidden", !quorum);
    const key = JSON.stringify(quorum);
    if (!quorum || this.shown === key) return;
    this.shown = key;
    const { machines, lost, waiting } = quorum;
    const reached = machines.filter((m) => !m.why).length;
    say($("quorum-note"), `${number(reached)} of ${plural(machines.length, "machine", "machines")} can be reached from here.`);
    say($("quorum-why"), waiting ? `This node waits: ${waiting}.` : lost ? `Nodes give IDs up to their horizons, and nothing can be written: ${lost}.` : "");
    this.list.replaceChildren(...machines.map((m) => machine(m, m.address === quorum.self)));
  }
}

function machine(m, self) {
  const badges = [];
  if (m.why) badges.push(badge("✕ unreachable", "bad"));
  if (m.leader) badges.push(badge("leader", "accent"));
  if (m.role && !m.why) badges.push(badge(m.role, m.role === "voter" ? "" : "warn"));
  if (self) badges.push(badge("this machine"));
  const facts = [];
  const fact = (term, text, bad) => facts.push(h("dt", {}, term), h("dd", { class: bad ? "far" : null }, text));
  if (m.why) fact("Error", m.why, true);
  if (m.behind) fact("Behind", `${m.why ? "at least " : ""}${plural(m.behind, "entry", "entries")}`);
  if (!m.why) {
    if (!m.behind && m.size) fact("Behind", "nothing");
    if (m.size) fact("Data", `${bytes(m.size)}, log ${bytes(m.log_size)}`);
    if (m.fsync_ms) fact("Disk sync", `${m.fsync_ms < 10 ? m.fsync_ms.toFixed(1) : number(m.fsync_ms)} ms`, m.fsync_ms > slowSync);
    if (!self) fact("Clock", Math.abs(m.clock_ms) < 1 ? "as this node’s" : `${span(m.clock_ms)} ${m.clock_ms < 0 ? "behind" : "ahead of"} this node’s`, Math.abs(m.clock_ms) > farClock);
    fact("Version", [m.version, m.etcd && `etcd ${m.etcd}`].filter(Boolean).join(", "));
    if (m.doing) fact("Status", m.doing);
  }
  return h("li", { "data-machine": m.address, "data-state": m.why ? "bad" : "good" },
    h("h3", {}, h("span", { class: "lamp", "aria-hidden": "true" }), h("code", {}, m.address)),
    badges.length ? h("p", { class: "badges" }, badges) : "", h("dl", {}, facts));
}
