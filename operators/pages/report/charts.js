"use strict";
// Drawings and tables. A drawing comes as [tag, attributes, children] and is built node by node.

function drawn([tag, attributes, children]) {
  return node(tag, attributes, ...children.map((child) => (Array.isArray(child) ? drawn(child) : child)));
}

/** A figure with title and caption around a drawing; null where there is none. */
function figure(tree, title, caption) {
  if (!tree) return null;
  const svg = drawn(tree);
  svg.style.maxWidth = `${1.2 * Number(tree[1].width)}px`;
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", title);
  return node("figure", { class: Number(tree[1].width) > 400 ? "card wide" : "card" }, node("h3", {}, title), svg, caption && node("figcaption", {}, caption));
}

/** A plain table. `columns`: [{ title, of: row => text or node, number }]. */
function table(caption, columns, rows) {
  const head = columns.map((column) => node("th", { scope: "col", class: column.number && "n" }, column.title));
  const lines = rows.map((row) => node("tr", {}, columns.map((column) => node("td", { class: column.number && "n" }, column.of(row)))));
  return grid(caption, head, lines);
}

/** A horizontal bar for a value in [0, 1], its name before and the number after it. */
function meter(name, value, colour = "var(--c1)") {
  const width = Math.max(0, Math.min(1, value ?? 0)) * 100;
  return node("div", { class: "meter" }, node("span", {}, name),
    node("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      node("rect", { width: 100, height: 10, fill: "var(--line)" }), node("rect", { width, height: 10, fill: colour })),
    node("span", {}, shown(value)));
}

function section(id, title, ...content) {
  return node("section", { id, "aria-labelledby": `${id}-title` }, node("h2", { id: `${id}-title` }, title), ...content);
}
