"use strict";
// The upper part of the page: leaderboards, charts, categories, variance, failures, cost, provenance.

const PERCENT = new Set(["accuracy", "accuracy_answered", "no_answer_rate"]);
const HEADS = { aria: "ARIA", accuracy: "Acc %", accuracy_answered: "Acc % of answered", no_answer_rate: "No answer %" };

function headOf(column) { return HEADS[column] ?? column.slice(0, 2).toUpperCase(); }

function cellText(column, value) { return PERCENT.has(column) ? shown(value === null ? null : 100 * value, 1) : shown(value); }

/** One cell: value, interval, rows it rests on, colour by its rank in the column, best in bold. */
function rankCell(column, cell) {
  const ranked = cell.level !== null;
  const td = node("td", { class: `n${ranked ? " rank" : ""}${ranked && cell.rank === 1 ? " best" : ""}` }, cellText(column, cell.value));
  if (ranked) td.style.setProperty("--level", Math.round(8 * cell.level));
  if (cell.low !== null) td.append(node("small", {}, `${cellText(column, cell.low)} to ${cellText(column, cell.high)}`));
  else if (cell.value !== null) td.append(node("small", {}, `no interval: ${(cell.n_items ?? cell.n) > 1 ? "values alike" : "one item"}`));
  const items = cell.n_items === undefined || cell.n_items === cell.n ? "" : ` of ${cell.n_items} items`;
  td.append(node("small", {}, `n = ${cell.n}${items}`));
  td.title = cell.rank ? `rank ${cell.rank} of ${cell.of}` : "not ranked";
  return td;
}

/** How many items a value rests on: the cell's own, where a metric is not scored for all items; a share counts rows, of its model's items at the most. */
function itemsOf(entry, cell) { return cell.n_items ?? Math.min(cell.n, entry.n_items); }

/** The fewest items that a value of these columns rests on; Infinity where there is no value. */
function fewest(entries, columns) {
  return Math.min(...entries.flatMap((entry) => columns.map((column) => entry.cells[column] && entry.cells[column].value !== null ? itemsOf(entry, entry.cells[column]) : Infinity)));
}

/** A table of models whose column heads sort it. */
function boardTable(caption, columns, entries, first = "Model") {
  const line = (entry) => node("tr", {}, node("th", { scope: "row" }, entry.model, entry.mode && [" ", node("span", { class: `mode ${entry.mode}` }, entry.mode)]),
    columns.map((column) => rankCell(column, entry.cells[column])),
    node("td", { class: "n" }, String(entry.cells.aria.n), node("small", {}, `${entry.n_rows - entry.cells.aria.n} failed`)));
  const fill = (ordered) => box.querySelector("tbody").replaceChildren(...ordered.map(line));
  const heads = ["", ...columns].map((column) => {
    const th = node("th", { scope: "col", class: column && "n" });
    th.append(node("button", { type: "button", onclick: () => sortBy(column, th) }, column ? headOf(column) : first));
    return th;
  });
  function sortBy(column, th) {
    const down = th.getAttribute("aria-sort") !== "descending";
    for (const other of heads) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (entry) => (column ? entry.cells[column].value ?? -Infinity : entry.model);
    const sign = down ? -1 : 1;
    fill([...entries].sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : 0)));
  }
  const box = grid(caption, [...heads, node("th", { scope: "col", class: "n" }, "n scored")], entries.map(line), "board");
  return box;
}

/** Says which columns rest on few items in some model. */
function fewNote(board, columns) {
  const rough = columns.filter((column) => fewest(board.models, [column]) < 20);
  if (!rough.length) return "";
  return rough.length === columns.length ? " Few items: the intervals are rough." : ` Few items in ${rough.map(headOf).join(", ")} (${fewest(board.models, rough)} at the least): their intervals are rough.`;
}

function leaderboard(board, labels) {
  const metrics = Object.keys(labels);
  const n = board.models.map((entry) => entry.n_items);
  const told = `${board.benchmark}: ${span(n)} ${Math.max(...n) === 1 ? "item" : "items"}. ` +
    `The stronger the colour, the better the rank in the column; small print: 95% intervals over items (Student's, cut at 0 and 1, none of one item and where values are alike; for shares Wilson's), and n, the rows that have the value.${fewNote(board, [...metrics, ...PERCENT])}`;
  const { charts } = board;
  const lines = charts.correlation_lines;
  return [
    boardTable(told, [...metrics, ...PERCENT], board.models),
    node("div", { class: "charts" },
      figure(charts.scatter, "ARIA against accuracy", "Modes as in section 3.4 of ARIA-Rubrics, high meaning at least the median of the models here; a model that fits none has no mode. Bars are 95% intervals."),
      figure(charts.profiles, "Profile of every model", "Mean of each metric."),
      figure(charts.correlations, "Correlation between metrics", charts.n_correlated && `Pearson, over the ${charts.n_correlated} rows with all six metrics.`)),
    lines && node("details", {}, node("summary", {}, "Correlations with 95% intervals"), table([sentence(lines[0].method), ...new Set(lines.map((line) => line.note).filter(Boolean))].join("; "), [
      { title: "Metrics", of: (line) => line.pair }, { title: "Pearson's r", number: true, of: (line) => shown(line.estimate) }, { title: "95% interval", number: true, of: (line) => between([line.low, line.high]) },
      { title: "rows", number: true, of: (line) => String(line.n) }, { title: "items", number: true, of: (line) => String(line.n_clusters) }], lines)),
    charts.distributions.length > 0 && node("h3", {}, "Distribution of every metric over items"),
    charts.distributions.length > 0 && node("p", { class: "soft" }, "Bar: middle half, tick: median, line: 5% to 95%, n: items that have the metric."),
    node("div", { class: "charts" }, charts.distributions.map((found) => figure(found.tree, found.title))),
  ];
}

function categoryTables(blocks, labels) {
  const place = node("div");
  const choice = node("select", { id: "category-measure", onchange: () => fill() },
    [...Object.keys(labels), "accuracy"].reverse().map((name) => node("option", { value: name }, labels[name] ?? "Accuracy %")));
  function fill() {
    const column = choice.value;
    place.replaceChildren(...blocks.flatMap((block) => {
      const models = [...new Set(block.groups.flatMap((group) => group.models.map((entry) => entry.model)))];
      const least = fewest(block.groups.flatMap((group) => group.models), [column]);
      const few = least < 20 ? ` Few items in some groups (${least} at the least): their intervals are rough.` : "";
      const rows = block.groups.map((group) => node("tr", {}, node("th", { scope: "row" }, group.group, node("small", {}, `n = ${span(group.models.map((entry) => entry.n_items))}`)),
        models.map((model) => {
          const entry = group.models.find((one) => one.model === model);
          return entry ? rankCell(column, entry.cells[column]) : node("td", { class: "n" }, "–");
        })));
      const kind = block.kind.replaceAll("_", " ");
      const heads = [node("th", { scope: "col" }, kind), ...models.map((model) => node("th", { scope: "col", class: "n" }, model))];
      return grid(`${labels[column] ?? "Accuracy %"}, ${block.benchmark} by ${kind}; colours rank the models within a row; small print: 95% intervals over items (${column === "accuracy" ? "Wilson's" : "Student's, cut at 0 and 1"}), and n, the rows that have the value.${few}`, heads, rows, "board");
    }));
  }
  fill();
  return [node("label", {}, "Measure ", choice), place];
}

function sentence(text) { return text[0].toUpperCase() + text.slice(1); }

/** One number where all are alike, else the least and the most. */
function span(counts) {
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? String(least) : `${least} to ${most}`;
}

function between([low, high]) { return low === null ? "–" : `${shown(low)} to ${shown(high)}`; }

/** Shares with their intervals, behind the drawing of them. */
function shareTable(block, labels) {
  const parts = Object.keys(block.rows[0].parts);
  return node("details", {}, node("summary", {}, `${block.title}: shares with 95% intervals`), table(
    `Percentile bootstrap, items drawn, moved by twice its bias.${Math.min(...block.rows.map((row) => row.n_items)) < 20 ? " Few items: the intervals are rough." : ""}`, [
      { title: "Measure", of: (row) => labels[row.measure] }, ...parts.flatMap((part) => [
        { title: part, number: true, of: (row) => shown(row.parts[part]) }, { title: "95% interval", number: true, of: (row) => between(row.intervals[part]) }]),
      { title: "models", number: true, of: (row) => String(row.n_models) }, { title: `${block.other}s`, number: true, of: (row) => String(row.n_others) }], block.rows));
}

function variance(blocks, labels) {
  return [variancePlots(blocks), ...blocks.map((block) => shareTable(block, labels))];
}

function variancePlots(blocks) {
  return node("div", { class: "charts" }, blocks.map((block) =>
    figure(block.chart, block.title, `Eta squared of a two-way analysis of variance without replication, over ${block.rows[0].n_models} models and ` +
      `${Math.min(...block.rows.map((row) => row.n_others))} ${block.other}s (the fewest of any measure) that every model has. From left to right: ${Object.keys(block.rows[0].parts).join(", ")}; the residual is interaction and noise.`)));
}

function failureTable(failures) {
  return table("Rows without a score or an answer", [
    { title: "Model", of: (row) => row.model },
    { title: "Stage", of: (row) => row.stage },
    { title: "Reason", of: (row) => row.reason },
    { title: "Rows", number: true, of: (row) => String(row.n) },
    { title: "For example", of: (row) => node("a", { href: `#${new URLSearchParams({ item: row.example_item_id, benchmark: row.example_benchmark ?? "", model: row.model, trial: row.example_trial ?? 0 })}` }, row.example_item_id) },
  ], failures);
}

/** Tokens, sound and money by model; only what some model tells. */
function usageTable(rows) {
  if (!rows.length) return null;
  const told = Object.keys(rows[0]).filter((key) => key !== "model" && rows.some((row) => row[key] !== null));
  return table("What the responses took, as far as the models tell", [
    { title: "Model", of: (row) => row.model },
    ...told.map((key) => ({ title: key.replaceAll("_", " "), number: true, of: (row) => (row[key] === null ? "–" : row[key].toLocaleString("en", { maximumFractionDigits: key === "cost" ? 4 : 1 })) }))], rows);
}

function costs(runs) {
  return runs.map((run) => run.stages && Object.keys(run.stages).length > 0 && table(`${run.name}: stages; wall seconds ${Object.entries(run.wall_seconds ?? {}).map(([name, value]) => `${name} ${shown(value, 1)}`).join(", ")}`, [
    { title: "Stage", of: ([name]) => name },
    ...["rows", "from_store", "computed", "failed"].map((key) => ({ title: key.replace("_", " "), number: true, of: ([, stage]) => String(stage[key] ?? "–") })),
    { title: "seconds inside", number: true, of: ([, stage]) => shown(stage.seconds, 1) },
    { title: "rows per second", number: true, of: ([, stage]) => shown(stage.rows_per_second, 2) },
  ], Object.entries(run.stages)));
}

function provenance(runs) {
  return runs.map((run) => node("div", { class: "card" }, node("h3", {}, run.name),
    run.fingerprints && table("Fingerprints: scores compare where these are equal", [
      { title: "Stage", of: ([name]) => name }, { title: "Fingerprint", of: ([, print]) => node("code", {}, print) }], Object.entries(run.fingerprints)),
    run.versions && node("p", { class: "soft" }, Object.entries(run.versions).map(([name, version]) => `${name} ${version}`).join(", ")),
    ["config", "specs", "recorded"].filter((name) => run[name]).map((name) => node("details", {}, node("summary", {}, name), node("pre", {}, JSON.stringify(run[name], null, 1))))));
}

/** The sections of an ARIA report, in order. */
function overview(data) {
  const { boards, labels, runs } = data;
  return [
    section("leaderboard", "Leaderboard", boards.flatMap((board) => leaderboard(board, labels))),
    section("categories", "By category", categoryTables(data.categories, labels)),
    data.variance.length > 0 && section("variance", "Where the variance lies", variance(data.variance, labels)),
    section("failures", "Failures", data.failures.length ? failureTable(data.failures) : node("p", {}, "Every row was scored and answered.")),
    section("cost", "Cost and throughput", usageTable(data.usage), costs(runs)),
    section("provenance", "Provenance", provenance(runs)),
  ].filter(Boolean);
}
