// The details of a member.

import { $, h } from "./dom.js";
import { clock, colourOf, number, plural, stateOf, who } from "./words.js";
import { pageOf } from "./nodes.js";
import { memberVerbs } from "./verbs.js";

const badge = (text, kind) => h("span", { class: `badge ${kind ?? ""}` }, text);

export class Members {
  constructor({ goto }) {
    this.goto = goto;
    this.box = $("member");
  }

  // drawOne shows one member, or a hint.
  drawOne(model, id, kept) {
    const m = model.members.get(id) ?? model.joins.get(id);
    const state = m && stateOf(id, m, model);
    const key = JSON.stringify([id, m, m?.joined > 0 && model.when(m.joined), state, kept, model.heldBy(id), model.facts.member, model.past, model.may, model.watcherOf(id), model.named, id && colourOf(id), model.names().filter((name) => model.sequencers.get(name).rules?.drained.includes(id))]);
    if (this.shown === key) return;
    this.shown = key;
    if (!m) {
      this.box.replaceChildren(h("p", { class: "soft" }, id ? `${who(id)} is no longer a member.` : "Point at a member to see its details."));
      return;
    }
    const swatch = h("i", { class: "swatch" });
    swatch.style.setProperty("--hue", colourOf(id));
    const badges = [];
    if (id === model.facts.member) badges.push(badge("this node", "accent"));
    if (state.text && !m.phase) badges.push(badge(`${{ good: "●", bad: "✕", doubt: "◌" }[state.kind]} ${state.text}`, state.kind));
    if (m.phase) badges.push(badge(`◇ join ${m.phase}`, "warn"));
    if (kept) badges.push(badge("pinned"));
    const facts = [["Owner", m.owner || "not known"]];
    if (m.why) facts.push(["Why", m.why]);
    for (const [protocol, at] of Object.entries(m.addresses ?? {})) facts.push([protocol, protocol === "admin" && pageOf(m) ? h("a", { href: pageOf(m), target: "_blank", rel: "noreferrer" }, at) : at]);
    if (m.version) facts.push(["Version", m.version]);
    if (m.since) facts.push(["Runs since", clock(m.since)]);
    if (m.phase) facts.push(["Target", who(m.target)]);
    else {
      if (m.joined > 0) facts.push(["Joined", model.when(m.joined)]);
      facts.push(["Watches", m.watches ? who(m.watches) : "none: it is the only member"]);
      const by = model.watcherOf(id);
      if (by) facts.push(["Watched by", who(by)]);
    }
    const held = model.heldBy(id);
    const chips = held.slice(0, 12).map(([name, node]) => h("li", {}, h("button", { type: "button", onclick: () => this.goto(name, node) }, node < 0 ? `${name}: waiting` : `${name} · ${node}`)));
    if (held.length > 12) chips.push(h("li", { class: "soft" }, `and ${number(held.length - 12)} more`));
    this.box.replaceChildren(
      h("h3", {}, swatch, h("code", {}, id)),
      badges.length ? h("p", { class: "badges" }, badges) : "",
      h("dl", {}, facts.map(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]), h("dt", {}, "Node IDs"), h("dd", {}, held.length ? plural(held.length, "", "").trim() : "none")),
      held.length ? h("ul", { class: "chips" }, chips) : "", model.may && !model.past && !m.phase ? memberVerbs(id, model) : "");
  }
}
