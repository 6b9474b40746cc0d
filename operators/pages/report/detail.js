"use strict";
// One response: question, choices, clips, the chain in its slots, both extractions, and what every metric saw.

const SLOTS = ["perception", "analysis", "reasoning", "answer"];
const AT_FIRST = 20000;

/** The first `most` characters of a text, and an ellipsis where more follow. */
function cut(text, most) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** What every view begins with: the way back, the name of what is shown, and the ones before and after it. */
function viewHead(browser, row, item) {
  const [sign, kind, said] = browser.verdict(row);
  const step = (by) => node("button", { type: "button", onclick: () => browser.open(browser.at + by, true), disabled: browser.order[browser.at + by] === undefined, "aria-label": by < 0 ? "previous response" : "next response" }, by < 0 ? "‹" : "›");
  return node("div", { class: "head" }, node("button", { type: "button", class: "back", "aria-label": "back to the list", onclick: () => browser.back() }, "‹ List"),
    node("h3", {}, node("span", { class: kind }, `${sign} `), `${item.item_id}, ${browser.models[browser.columns.model[row]]}`, node("span", { class: "only-read" }, `: ${said}`)), step(-1), step(1));
}

/** The rows about the same item that `wanted` keeps, this one among them. */
function sameItem(browser, row, wanted = () => true) {
  const { columns } = browser;
  const rows = [];
  for (let other = 0; other < browser.size; other++) if (columns.item[other] === columns.item[row] && wanted(other)) rows.push(other);
  return rows;
}

function responseView(browser, row, item, detail) {
  const { columns } = browser;
  return [
    viewHead(browser, row, item),
    node("p", { class: "soft" }, [item.benchmark, item.category, columns.trial[row] ? `trial ${columns.trial[row]}` : null, item.groups && Object.values(JSON.parse(item.groups)).join(" · "), `ARIA ${shown(columns.aria[row])}`].filter(Boolean).join(" · ")),
    problems(item, detail),
    unreadable(detail),
    node("h4", {}, item.question ?? ""),
    choices(item, columns.answer[row], columns.answer_paper[row]),
    players(item.clips, browser.clips),
    detail.audio_seconds_used !== undefined && node("p", { class: "soft" }, `The model was given ${shown(detail.audio_seconds_used, 1)} s of audio.`),
    node("h4", {}, "Response"),
    response(detail),
    node("h4", {}, "Extracted answer"),
    extraction(item, detail),
    node("h4", {}, "What the metrics saw"),
    node("div", { class: "metrics" }, browser.bars.map((name) => metricCard(browser.labels[name], name, columns[name][row], detail, browser.scored))),
    others(browser, row),
  ].filter(Boolean);
}

function problems(item, detail) {
  const found = [item.item_error, item.audio_error, detail.response_error, detail.row_error].filter(Boolean);
  return found.length > 0 && node("div", { class: "card wrong" }, [...new Set(found)].map((text) => node("p", {}, text)));
}

/** What to say of a row in whose text some bytes are no UTF-8; false for others. */
function unreadable({ text_error: columns }) {
  return columns !== undefined && node("p", { class: "card wrong" }, `This row holds text that is not UTF-8 (${columns.replace("not_utf8: ", "")}): \ufffd stands for what could not be read.`);
}

function choices(item, robust, paper) {
  const tag = (on, text) => on && node("span", { class: "tag" }, text);
  return node("ol", { class: "choices" }, (item.choices ?? []).map((choice, place) =>
    node("li", { class: place === item.gold_index ? "right" : place === robust ? "wrong" : null }, choice,
      tag(place === item.gold_index, "right answer"), tag(place === robust, "extracted"), tag(place === paper && paper !== robust, "extracted by the paper's rule"))));
}

function players(places, clips) {
  return node("div", {}, places.map((place, number) => {
    const clip = clips[place];
    const name = `${places.length > 1 ? `Clip ${number + 1}: ` : ""}${clip.name}${clip.seconds === null ? "" : ` (${shown(clip.seconds, 1)} s)`}`;
    if (clip.missing) return node("p", { class: "soft" }, `${name}: ${clip.missing}.`);
    const audio = node("audio", { controls: true, preload: "none", "aria-label": name });
    const note = node("span", { class: "soft" }, name);
    if (clip.href) audio.src = clip.href;
    else embedded(clip.block).then((uri) => { audio.src = uri; });
    audio.addEventListener("error", () => { note.textContent = `${name}: the file ${clip.href ? decodeURIComponent(clip.href) : clip.name} is missing beside this page, or of a kind that this browser does not play.`; });
    return node("div", {}, note, audio);
  }));
}

/** Where `part` last stands in `text` so that `free(place)`; -1 for nowhere. The search of Knuth, Morris and Pratt, from the
 * end: its time is linear in both lengths, that of `lastIndexOf` their product where a response repeats itself. */
function lastPlace(text, part, free) {
  const size = part.length, borders = new Int32Array(size + 1);
  const letter = (place) => part.charCodeAt(size - 1 - place);
  const matched = (long, code) => { while (long > 0 && (long === size || letter(long) !== code)) long = borders[long]; return letter(long) === code ? long + 1 : long; };
  for (let place = 1; place < size; place++) borders[place + 1] = matched(borders[place], letter(place));
  let long = 0;
  for (let place = text.length - 1; place >= 0; place--) {
    long = matched(long, text.charCodeAt(place));
    if (long === size && free(place)) return place;
  }
  return -1;
}

/** [[text, slot or null], ...] of the whole response; a slot stands where its text last occurs, not inside another. */
function inSlots(text, slots) {
  const taken = [];
  const missing = [];
  for (const slot of Object.keys(slots).sort((a, b) => slots[b].length - slots[a].length)) {
    const long = slots[slot].length;
    const start = lastPlace(text, slots[slot], (at) => !taken.some((other) => at < other.end && other.start < at + long));
    if (start < 0) missing.push(slot);
    else taken.push({ start, end: start + long, slot });
  }
  const parts = [];
  let from = 0;
  for (const { start, end, slot } of taken.sort((a, b) => a.start - b.start)) {
    if (start > from) parts.push([text.slice(from, start), null]);
    parts.push([text.slice(start, end), slot]);
    from = end;
  }
  if (from < text.length) parts.push([text.slice(from), null]);
  return { parts, missing };
}

/** The whole response; with `inSteps` its slots are coloured and named. */
function response(detail, inSteps = true) {
  const text = detail.response;
  if (detail.response_left_out !== undefined) return node("p", { class: "soft" }, `This response (${detail.response_left_out.toLocaleString("en")} characters) is left out of the page, as too many were: it stands in the run's tables, or set embed_text_mb=.`);
  if (text === undefined) return node("p", { class: "soft" }, "There is no response.");
  const slots = Object.fromEntries(SLOTS.filter((slot) => detail[slot]).map((slot) => [slot, detail[slot]]));
  const { parts, missing } = inSlots(text, slots);
  const box = node("div", { class: "response", dir: "auto" });
  const fill = (limit) => {
    let left = limit;
    box.replaceChildren(...parts.map(([part, slot]) => {
      const fits = part.slice(0, Math.max(0, left));
      left -= part.length;
      return fits && node("span", { class: slot && `slot ${slot}`, title: slot }, fits);
    }).filter(Boolean));
  };
  fill(AT_FIRST);
  const more = text.length > AT_FIRST && node("button", { type: "button", onclick: () => { fill(Infinity); more.remove(); } }, `Show all ${text.length.toLocaleString("en")} characters`);
  const absent = SLOTS.filter((slot) => !slots[slot]);
  return node("div", {}, inSteps && node("div", { class: "legend" }, SLOTS.filter((slot) => slots[slot]).map((slot) => node("span", { class: `slot ${slot}` }, slot)),
    absent.length > 0 && node("span", { class: "soft" }, `absent: ${absent.join(", ")}`)), box, more,
    missing.map((slot) => node("p", {}, node("span", { class: `slot ${slot}` }, `${slot}: ${cut(slots[slot], AT_FIRST)}`))),
    detail.finish_reason && node("p", { class: "soft" }, `finished: ${detail.finish_reason}`));
}

function extraction(item, detail) {
  const letter = (place) => (place === undefined ? "none" : `${String.fromCharCode(65 + place)}: ${item.choices?.[place] ?? ""}`);
  const rules = [["robust rule", ""], ["paper's rule", "_paper"]];
  return table("Both extractors", [
    { title: "Rule", of: ([name]) => name },
    { title: "Answer", of: ([, end]) => letter(detail[`answer_index${end}`]) },
    { title: "Found by", of: ([, end]) => detail[`answer_stage${end}`] ?? "–" },
    { title: "Why none", of: ([, end]) => detail[`answer_reason${end}`] ?? "" },
  ], rules);
}

/** `scored`: how M4 and M5 were computed, where the runs of the page say so alike. Details of another make than the metric's
 * are shown as text. */
function metricCard(label, name, value, detail, scored) {
  const { details = {}, reason, unread } = detail.metrics[name] ?? {};
  const body = { m1: grounding, m2: coherence, m3: coverage, m4: causality, m5: progress, m6: density }[name.slice(0, 2)];
  const seen = () => [body(details, detail, scored)].flat().concat(details.truncated?.length > 0 && node("p", { class: "soft" }, `cut at the model's limit: ${details.truncated.join(", ")}`));
  let parts, text = unread;
  try { parts = seen(); } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    text ??= cut(JSON.stringify(details), 300);
  }
  return node("div", { class: "card" }, node("h4", {}, node("span", {}, label), node("span", {}, shown(value))),
    reason && node("p", { class: "wrong" }, reason), parts, text && node("p", { class: "soft" }, `These details cannot be read: ${text}`));
}

function grounding(details) {
  const { entities = [], similarities = [] } = details;
  if (!entities.length) return node("p", { class: "soft" }, "The perception step names no entity.");
  return node("div", {}, entities.map((entity, place) => meter(entity, similarities[place] ?? null)));
}

function coherence(details) {
  return [["P to A", details.cosine_p_a], ["A to R", details.cosine_a_r]].map(([name, value]) => meter(name, value ?? null, "var(--c2)"));
}

function coverage(details) {
  return SLOTS.filter((slot) => slot in details).map((slot) => meter(slot, details[slot], "var(--c3)"));
}

/** Perplexity of the right answer after each step, and the information that the step brought: the change from the
 * longest context before it, as M4 takes it (an absent step has none). */
function causality(details, detail, { form }) {
  const steps = [["P", details.ppl_p], ["P A", details.ppl_pa], ["P A R", details.ppl_par]];
  if (steps.every(([, value]) => value === undefined)) return null;
  const log = form === "log_ratio";
  const change = (place) => {
    const after = steps[place][1], before = steps.slice(0, place).map(([, value]) => value).findLast((value) => value != null);
    if (after == null || before === undefined) return "–";
    return log ? shown(Math.log(after) - Math.log(before)) : shown(after - before, 1);
  };
  return [table("Perplexity of the right answer", [
    { title: "after", of: ([name]) => name },
    { title: "perplexity", number: true, of: ([, value]) => shown(value, 1) },
    { title: log ? "change of its logarithm" : "change", number: true, of: (step) => change(steps.indexOf(step)) }], steps),
  node("p", { class: "soft" }, "A fall: the step made the right answer likelier.")];
}

function progress(details, detail, { granularity }) {
  const pairs = [["p_a", "perception", "analysis"], ["a_r", "analysis", "reasoning"], ["r_ans", "reasoning", "answer"]].filter(([key]) => key in details);
  const bySentence = granularity === "sentence_minmax" && pairs.length > 0;
  return [bySentence && node("p", { class: "soft" }, "Whole slots shown, scored by sentence: each sentence after \"then\" counts by the sentence after \"if\" that supports it best, the pair by its weakest."),
    pairs.map(([key, premise, hypothesis]) => node("div", { class: "pair" },
    meter(`${premise} ⊨ ${hypothesis}`, details[key], "var(--c6)"),
    detail[premise] && node("p", { class: "clamp", title: cut(detail[premise], 2000) }, node("b", {}, "if "), cut(detail[premise], 400)),
    detail[hypothesis] && node("p", { class: "clamp", title: cut(detail[hypothesis], 2000) }, node("b", {}, "then "), cut(detail[hypothesis], 400))))];
}

function density(details) {
  if (details.n_words === undefined) return null;
  return node("p", {}, `${details.n_words} words counted, ${details.n_out_of_vocabulary} of them unknown to the word vectors, ${details.n_stop_words} stop words left out.`);
}

/** What the other models (or trials) made of the same item. */
function others(browser, row) {
  const { columns, models } = browser;
  const rows = sameItem(browser, row, (other) => other !== row);
  if (!rows.length) return null;
  const item = browser.items[columns.item[row]];
  return node("div", {}, node("h4", {}, "The same item"), table("Other responses", [
    { title: "Model", of: (other) => node("a", { href: browser.link(other) }, models[columns.model[other]]) },
    { title: "", of: (other) => { const [sign, kind, said] = browser.verdict(other); return node("span", { class: kind }, `${sign} ${said}`); } },
    { title: "Answer", of: (other) => (columns.answer[other] === null ? "–" : item.choices[columns.answer[other]]) },
    { title: "ARIA", number: true, of: (other) => shown(columns.aria[other]) }], rows));
}
