// The machines that keep the store, if the nodes keep it themselves.

import { $, h, say } from "./dom.js";
import { bytes, number, plural, span } from "./words.js";

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
    const { machines, waiting } = quorum;
    const reached = machines.filter((m) => !m.error).length;
    say($("quorum-note"), `${number(reached)} of ${plural(machines.length, "machine", "machines")} can be reached from here.`);
    say($("quorum-why"), waiting ? `This node waits: ${waiting}.` : "");
    this.list.replaceChildren(...machines.map((m) => machine(m, m.address === quorum.self)));
  }
}

function machine(m, self) {
  const badges = [];
  if (m.error) badges.push(badge("✕ unreachable", "bad"));
  if (m.leader) badges.push(badge("leader", "accent"));
  if (m.role && !m.error) badges.push(badge(m.role, m.role === "voter" ? "" : "warn"));
  if (self) badges.push(badge("this machine"));
  const facts = [];
  const fact = (term, text, bad) => facts.push(h("dt", {}, term), h("dd", { class: bad ? "bad" : null }, text));
  if (m.error) fact("Error", m.error, true);
  if (m.behind) fact("Behind", `${m.error ? "at least " : ""}${plural(m.behind, "entry", "entries")}`);
  if (!m.error) {
    if (!m.behind && m.size) fact("Behind", "nothing");
    if (m.size) fact("Data", `${bytes(m.size)}, log ${bytes(m.log_size)}`);
    const [sync, ahead] = [m.fsync_ns / 1e6, m.clock_ns / 1e6];
    if (sync) fact("Disk sync", `${sync < 10 ? sync.toFixed(1) : number(sync)} ms`);
    if (!self) fact("Clock", Math.abs(ahead) < 1 ? "as this node’s" : `${span(ahead)} ${ahead < 0 ? "behind" : "ahead of"} this node’s`);
    fact("Version", [m.version, m.etcd && `etcd ${m.etcd}`].filter(Boolean).join(", "));
    if (m.doing) fact("Status", m.doing);
  }
  return h("li", { "data-machine": m.address, "data-state": m.error ? "bad" : "good" },
    h("h3", {}, h("span", { class: "lamp", "aria-hidden": "true" }), h("code", {}, m.address)),
    badges.length ? h("p", { class: "badges" }, badges) : "", h("dl", {}, facts));
}
