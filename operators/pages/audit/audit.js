"use strict";
// The verdict page of an audit. All text of models and users arrives as data and leaves as text nodes.

const pct = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)}%`);
const pts = (value) => (value === null ? "–" : `${value >= 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(1)}`);
const range = (low, high, show) => (low === null ? "" : `${show(low)} to ${show(high)}`);
const byId = (id) => document.getElementById(id);

function cell(main, under) {
  return node("td", { class: "n" }, main, under ? node("span", { class: "under" }, under) : null);
}

function table(caption, heads, rows) {
  return grid(caption, heads.map((head, i) => node("th", { scope: "col", class: i > 1 ? "n" : null }, head)), rows);
}

function finding(found) {
  const list = node("ul", {}, found.details.map((line) => node("li", {}, line)));
  return node("article", { class: `card finding ${found.diagnosis}` },
    node("h3", {}, `${found.judge}, cue: ${found.cue}`),
    node("p", { class: "diagnosis" }, found.headline),
    node("details", { open: found.first }, node("summary", {}, "Numbers"), list));
}

function bar(group) {
  const parts = [];
  let x = 0;
  for (const state of group.states) {
    if (!state.mass) continue;
    const rect = node("rect", { x: 1000 * x, y: 0, width: 1000 * state.mass, height: 10, class: `s${state.state}` },
      node("title", {}, `${state.state} ${state.name}: ${pct(state.mass)}`));
    parts.push(rect);
    x += state.mass;
  }
  const told = group.states.filter((s) => s.mass).map((s) => `${s.name} ${pct(s.mass)}`).join(", ");
  const label = `${group.judge}, cue ${group.cue}: ${told || "no case has all three outcomes"}`;
  return node("figure", {},
    node("figcaption", {}, `${group.judge}, cue: ${group.cue}; ${group.n} cases${group.excluded ? `, ${group.excluded} left out for a missing outcome` : ""}`),
    node("div", { class: "bar", role: "img", "aria-label": label },
      node("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none" }, parts)));
}

function stateTable(groups, names) {
  const heads = ["State (P, O, J)", "Meaning", ...groups.map((g) => `${g.judge}, ${g.cue}`)];
  const rows = names.map(([state, name], i) => node("tr", {}, node("td", {}, state), node("td", {}, name),
    groups.map((g) => cell(pct(g.states[i].mass), range(g.states[i].low, g.states[i].high, pct)))));
  return table("Mass of each state, 95% interval below", heads, rows);
}

function accuracyRow(row) {
  return node("tr", {}, node("td", {}, row.judge), node("td", {}, row.cue), row.probes.map((probe) => {
    if (!probe || probe.accuracy === null) return cell("–", probe ? `0 of ${probe.n_calls} readable` : "");
    const lost = probe.n_calls - probe.n_scored;
    return node("td", { class: "n" }, pct(probe.accuracy),
      node("span", { class: "under" }, range(probe.low, probe.high, pct)),
      node("span", { class: "under" }, `${probe.n_correct} of ${probe.n_scored}${lost ? `, ${lost} null` : ""}`),
      probe.turns === null ? null : node("span", { class: "under" }, `per turn ${pct(probe.turns)} (${range(probe.turn_low, probe.turn_high, pct)})`),
      node("span", { class: "under" }, `R1/E1 right ${pct(probe.right_first)}, R2/E2 right ${pct(probe.right_second)}`));
  }));
}

function rateRow(row) {
  return node("tr", {}, node("td", {}, row.judge), node("td", {}, row.cue),
    cell(pct(row.reliable)), cell(pct(row.potemkin)), cell(pct(row.shortcut)),
    cell(pct(row.conditional), row.both ? `of ${row.both}; ${range(row.conditional_low, row.conditional_high, pct)}` : ""),
    cell(pts(row.gap), range(row.gap_low, row.gap_high, pts)), cell(pts(row.dependence), range(row.cue_low, row.cue_high, pts)),
    cell(row.youden === null ? "–" : row.youden.toFixed(2), range(row.youden_low, row.youden_high, (end) => end.toFixed(2))),
    cell(pct(row.changes), range(row.voice_low, row.voice_high, pct)), cell(pct(row.kept), range(row.order_low, row.order_high, pct)));
}

function caseCard(one) {
  const turns = one.turns.map((t) => node("li", {}, `${t.speaker} (${t.emotion}): ${t.text}`));
  return node("article", { class: "card case" },
    node("h3", {}, `${one.item}, voice ${one.branch + 1} of 2, cue: ${one.cue}`),
    node("p", {}, `${one.state} ${one.name}`), node("ol", {}, turns),
    node("p", {}, node("strong", {}, "Right reply: "), one.right), node("p", {}, node("strong", {}, "Other reply: "), one.other),
    node("p", { class: "soft" }, one.said === null ? `No readable judgment: ${one.reason}` : `The judge said (R1 was the ${one.r1} reply):`),
    one.said === null ? null : node("blockquote", {}, one.said));
}

function cases(all, names) {
  const fill = (select, options) => select.append(...options.map((text) => node("option", { value: text }, text)));
  const judges = [...new Set(all.map((one) => one.judge))];
  fill(byId("pick-state"), ["all", ...names.map(([state, name]) => `${state} ${name}`).filter((s) => all.some((one) => `${one.state} ${one.name}` === s))]);
  fill(byId("pick-judge"), ["all", ...judges]);
  const draw = () => {
    const state = byId("pick-state").value, judge = byId("pick-judge").value;
    const kept = all.filter((one) => (state === "all" || `${one.state} ${one.name}` === state) && (judge === "all" || one.judge === judge));
    byId("cases-count").textContent = `${kept.length} cases${kept.length > 30 ? ", the first 30 are shown" : ""}`;
    byId("cases").replaceChildren(...kept.slice(0, 30).map(caseCard));
  };
  byId("pick-state").addEventListener("change", draw);
  byId("pick-judge").addEventListener("change", draw);
  draw();
}

async function start() {
  themeSwitch(byId("theme"));
  unfoldForPrint();
  const audit = await embedded("audit");
  byId("title").textContent = audit.title;
  byId("subtitle").textContent = audit.subtitle;
  const [controls, judges] = [audit.findings.filter((f) => f.control), audit.findings.filter((f) => !f.control)];
  byId("findings").append(...judges.map(finding));
  if (controls.length) byId("findings").append(node("details", {}, node("summary", {}, "Controls: judges that are useless by construction"), controls.map(finding)));
  byId("leaks").append(...audit.leaks.map((line) => node("p", { class: "card" }, line)));
  byId("states").append(
    node("ul", { class: "legend" }, audit.names.map(([state, name]) => node("li", {},
      node("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, node("rect", { width: 10, height: 10, class: `s${state}` })), `${state} ${name}`))),
    ...audit.states.map(bar), stateTable(audit.states, audit.names));
  byId("accuracy").append(table("Right answers, 95% interval and counts below; P: every turn right",
    ["Judge", "Cue", ...audit.heads], audit.accuracy.map(accuracyRow)));
  byId("rates").append(table("Differences are in points, 95% intervals over items below",
    ["Judge", "Cue", "Reliable", "Potemkin", "Shortcuts", "Cond. Potemkin", "Protocol gap", "Cue dependence", "Youden's J", "Voice changes answer", "Order kept"],
    audit.rates.map(rateRow)));
  byId("refused").append(audit.refused.length ? node("ul", {}, audit.refused.map((line) => node("li", {}, line))) : node("p", {}, "None."));
  byId("terms").append(...audit.terms.flatMap(([term, text]) => [node("dt", {}, term), node("dd", {}, text)]));
  cases(await embedded("cases"), audit.names);
  document.documentElement.dataset.ready = "yes";
}

start();
