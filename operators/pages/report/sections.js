"use strict";
// Sections that come as titles, drawings and tables: MUGEN and audit runs.

function plainSections(sections) {
  const cell = (value) => (typeof value === "number" && !Number.isInteger(value) ? shown(value) : value === null ? "–" : String(value));
  return sections.map((one) => section(one.id, one.title,
    node("div", { class: "charts" }, one.figures.map((found) => figure(found.tree, found.title, found.caption))),
    one.tables.map((found) => table(found.caption, found.columns.map((name, place) => ({
      title: name.replaceAll("_", " "), number: found.rows.some((row) => typeof row[place] === "number"), of: (row) => cell(row[place]) })), found.rows)),
    (one.runs ?? []).length > 0 && [...costs(one.runs), ...provenance(one.runs)]));
}
