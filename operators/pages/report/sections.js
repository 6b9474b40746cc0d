"use strict";
// Sections that come as titles, drawings and tables: MUGEN and audit runs.

const ROWS_AT_ONCE = 16;

function plainCell(value) {
  if (value === null) return "–";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : shown(value);
}

/** A table as it is, or, where it is long, behind its caption. */
function plainTable(found) {
  const columns = found.columns.map((name, place) => ({ title: name.replaceAll("_", " "), number: found.rows.some((row) => typeof row[place] === "number"), of: (row) => plainCell(row[place]) }));
  const made = table(found.caption, columns, found.rows);
  return found.rows.length <= ROWS_AT_ONCE ? made : node("details", {}, node("summary", {}, `${found.caption} (${found.rows.length} rows)`), made);
}

function plainSections(sections) {
  return sections.map((one) => section(one.id, one.title,
    node("div", { class: "charts" }, one.figures.map((found) => figure(found.tree, found.title, found.caption))),
    one.tables.map(plainTable),
    (one.runs ?? []).length > 0 && [...costs(one.runs), ...provenance(one.runs)]));
}
