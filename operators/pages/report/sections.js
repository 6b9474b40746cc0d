"use strict";
// Sections that come as titles, drawings and tables: MUGEN and audit runs.

const ROWS_AT_ONCE = 16;

/** The value at `place` of a row; counts and words as they are, an estimate with its interval below. */
function plainCell(found, place, row) {
  const told = (at) => {
    const value = row[at];
    if (value === null) return "–";
    if (!found.reals.includes(at)) return String(value);
    return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : shown(value);
  };
  const ends = found.ends[place];
  return ends && row[ends[0]] !== null ? [told(place), node("small", {}, `${told(ends[0])} to ${told(ends[1])}`)] : told(place);
}

/** A table as it is, or, where it is long, behind its caption. What all rows say alike stands in the caption. */
function plainTable(found) {
  const hidden = new Set([...Object.values(found.ends).flat(), ...found.constant]);
  const title = (place) => found.columns[place].replaceAll("_", " ");
  const columns = found.columns.map((name, place) => ({ place, title: title(place), number: found.rows.some((row) => typeof row[place] === "number"), of: (row) => plainCell(found, place, row) })).filter(({ place }) => !hidden.has(place));
  const alike = found.constant.map((place) => `${title(place)} ${plainCell(found, place, found.rows[0])}`).join(", ");
  const below = columns.some(({ place }) => found.ends[place]) ? "; 95% intervals below" : "";
  const made = table(`${found.caption}${below}${found.method && `. ${found.method}`}${alike && `${found.method ? "" : "."} All rows: ${alike}`}`, columns, found.rows);
  return found.rows.length <= ROWS_AT_ONCE ? made : node("details", {}, node("summary", {}, `${found.caption} (${found.rows.length} rows)`), made);
}

function plainSections(sections) {
  return sections.map((one) => section(one.id, one.title,
    node("div", { class: "charts" }, one.figures.map((found) => figure(found.tree, found.title, found.caption))),
    one.tables.map(plainTable),
    (one.runs ?? []).length > 0 && [...costs(one.runs), ...provenance(one.runs)]));
}
