// The details of a member, and the search for one.

import { $, h, say } from "./dom.js";
import { number, plural, short } from "./words.js";

const most = 40; // in the list

const badge = (text, kind) => h("span", { class: `badge ${kind ?? ""}` }, text);

export class Members {
  constructor({ point, keep, goto }) {
    this.point = point;
    this.keep = keep;
    this.goto = goto;
    this.box = $("member");
    this.field = $("find");
    this.list = $("found");
    this.field.addEventListener("input", () => this.drawList(this.model, this.hue));
    this.list.addEventListener("pointerover", (e) => this.point(e.target.closest("button")?.dataset.id ?? null));
    this.list.addEventListener("pointerleave", () => this.point(null));
    this.list.addEventListener("focusin", (e) => this.point(e.target.dataset.id));
    this.list.addEventListener("focusout", () => this.point(null));
    this.list.addEventListener("click", (e) => {
      const id = e.target.closest("button")?.dataset.id;
      if (id) this.keep(id);
    });
  }

  draw(model, hue) {
    this.model = model;
    this.hue = hue;
    this.drawList(model, hue);
  }

  // drawOne shows one member, or a hint.
  drawOne(model, id, hue, kept) {
    const m = model.members.get(id) ?? model.joins.get(id);
    const key = JSON.stringify([id, m, kept, model.heldBy(id), model.facts.member, model.past, model.watcherOf(id)]);
    if (this.shown === key) return;
    this.shown = key;
    if (!m) {
      this.box.replaceChildren(h("p", { class: "soft" }, id ? `${short(id)} is no longer a member.` : "Point at a member to see its details."));
      return;
    }
    const swatch = h("i", { class: "swatch" });
    swatch.style.setProperty("--hue", `var(--${hue(id)})`);
    const badges = [];
    if (id === model.facts.member) badges.push(badge("this node", "accent"));
    if (m.life === "dead") badges.push(badge("✕ not alive", "bad"));
    if (m.phase) badges.push(badge(`◇ join ${m.phase}`, "warn"));
    if (kept) badges.push(badge("pinned"));
    const facts = [["Owner", m.owner || "not known"]];
    if (m.phase) facts.push(["Target", short(m.target)]);
    else {
      if (m.joined > 0) facts.push(["Joined at", `position ${number(m.joined)}`]);
      facts.push(["Watches", m.watches ? short(m.watches) : "none: it is the only member"]);
      const by = model.watcherOf(id);
      if (by) facts.push(["Watched by", short(by)]);
    }
    const held = model.heldBy(id);
    const chips = held.slice(0, 12).map(([name, node]) => h("li", {}, h("button", { type: "button", onclick: () => this.goto(name, node) }, node < 0 ? `${name}: waiting` : `${name} · ${node}`)));
    if (held.length > 12) chips.push(h("li", { class: "soft" }, `and ${number(held.length - 12)} more`));
    this.box.replaceChildren(
      h("h3", {}, swatch, h("code", {}, id)),
      badges.length ? h("p", { class: "badges" }, badges) : "",
      h("dl", {}, facts.map(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]), h("dt", {}, "Node IDs"), h("dd", {}, held.length ? plural(held.length, "", "").trim() : "none")),
      held.length ? h("ul", { class: "chips" }, chips) : "");
  }

  drawList(model, hue) {
    const words = this.field.value.trim().toLowerCase();
    const fits = (id, m) => words === "" || id.includes(words) || (m.owner ?? "").toLowerCase().includes(words) ||
      model.heldBy(id).some(([name, node]) => String(node) === words || `${name} ${node}` === words.replace("·", " ").replace(/\s+/g, " "));
    const all = [];
    if (words !== "") model.indexHeld();
    for (const id of [...model.ring, ...model.joins.keys()]) {
      const m = model.members.get(id) ?? model.joins.get(id);
      if (fits(id, m)) all.push([id, m]);
    }
    const rows = all.slice(0, most);
    const key = JSON.stringify([rows, model.facts.member]);
    say($("found-more"), all.length > most ? `and ${number(all.length - most)} more` : all.length === 0 ? "no matches" : words ? plural(all.length, "member", "members") : "");
    if (this.listed === key) return;
    this.listed = key;
    const focused = document.activeElement?.dataset?.id;
    this.list.replaceChildren(...rows.map(([id, m]) => {
      const swatch = h("i", { class: `swatch ${m.phase ? "joins" : m.life === "dead" ? "dead" : ""}` });
      swatch.style.setProperty("--hue", `var(--${hue(id)})`);
      const note = m.life === "dead" ? "not alive" : m.phase ? `join ${m.phase}` : id === model.facts.member ? "this node" : "";
      return h("li", {}, h("button", { type: "button", "data-id": id, title: id }, swatch, h("code", {}, short(id)), h("span", { class: "clip" }, m.owner ?? ""), note ? h("em", {}, note) : null));
    }));
    if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }
}
