"use strict";
// One trial of a question whose options are clips, and one verdict of an audio judge.

const VIEWS = { aria: responseView, mugen: trialView, audit: verdictView };
const yesNo = (value) => (value === null || value === undefined ? "–" : value ? "right" : "wrong");

/** "clip 3", counted from 1 in the original order of the candidates; a dash for none. */
function clipName(place) {
  return place === null || place === undefined ? "–" : `clip ${place + 1}`;
}

function facts(pairs) {
  return node("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== false).map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, String(value)))));
}

function reply(detail) {
  return [node("h4", {}, "Response"), unreadable(detail), detail.response_error && node("p", { class: "wrong" }, detail.response_error), response(detail, false)];
}

/** Rows about the same item and model, each with a link and what `columns` say of it; this one is marked. */
function beside(browser, row, caption, rows, columns) {
  const [name, ...rest] = columns;
  return table(caption, [
    { title: name.title, of: (other) => (other === row ? node("b", {}, name.of(other)) : node("a", { href: browser.link(other) }, name.of(other))) }, ...rest,
    { title: "", of: (other) => { const [sign, kind, said] = browser.verdict(other); return node("span", { class: kind }, `${sign} ${said}`); } }], rows);
}

/** Question, candidates as this trial presented them, what it chose and what that means, and how the item was voted. */
function trialView(browser, row, item, detail) {
  const { columns } = browser;
  const order = detail.audio_order ?? [];
  const clip = (place) => (item.clips[place] === undefined ? node("p", { class: "soft" }, "This run kept no clips.") : players([item.clips[place]], browser.clips));
  const references = Array.from({ length: item.n_reference ?? 0 }, (_, place) => node("div", {}, node("b", {}, `Reference ${place + 1}`), clip(place)));
  const shownAt = order.map((original, position) => node("li", { class: original === item.gold_index ? "right" : position === detail.option_position ? "wrong" : null },
    node("span", {}, `${clipName(original)} of the question`), original === item.gold_index && node("span", { class: "tag" }, "right answer"), position === detail.option_position && node("span", { class: "tag" }, "chosen"), clip((item.n_reference ?? 0) + original)));
  const trials = sameItem(browser, row, (other) => columns.model[other] === columns.model[row] && columns.set[other] === columns.set[row]);
  const votes = (item.votes ?? []).filter((vote) => vote.model === browser.models[columns.model[row]]);
  return [
    viewHead(browser, row, item),
    node("p", { class: "soft" }, [item.benchmark, item.category, item.task, browser.sets[columns.set[row]], `trial ${columns.trial[row]}`].filter(Boolean).join(" · ")),
    node("h4", {}, item.question ?? "This run kept no questions."),
    references, node("h4", {}, "Candidates in the order in which this trial presented them"), node("ol", { class: "presented" }, shownAt),
    facts([["chosen position", detail.option_position === undefined ? `none (${detail.response_error ?? detail.option_reason ?? "not read"})` : detail.option_position + 1], ["which is", clipName(detail.choice_index)],
      ["right position", detail.gold_position === undefined ? null : detail.gold_position + 1], ["right answer", clipName(item.gold_index)], ["read by", detail.option_stage]]),
    reply(detail),
    beside(browser, row, "All trials of this series", trials, [
      { title: "Trial", of: (other) => String(columns.trial[other]) }, { title: "Choice, mapped back", of: (other) => clipName(columns.answer[other]) }]),
    votes.length > 0 && table("Votes on this item", [
      { title: "Strategy", of: (vote) => `${vote.strategy}${vote.n_candidates === null ? "" : `, ${vote.n_candidates} candidates`}` },
      { title: "Answer", of: (vote) => `${clipName(vote.choice_index)}${vote.tie ? " (tie)" : ""}` },
      { title: "Votes", number: true, of: (vote) => `${vote.n_votes} of ${vote.n_trials}` }, { title: "", of: (vote) => yesNo(vote.correct) }], votes),
  ].flat(2).filter(Boolean);
}

/** Both voices of the item, the replies, what the judge was asked and said, and its verdicts under all conditions. */
function verdictView(browser, row, item, detail) {
  const { columns } = browser;
  const clip = (place) => (place === null || place === undefined ? node("p", { class: "soft" }, "This run kept no clips.") : players([place], browser.clips));
  const voices = (item.branches ?? []).map((turns, branch) => node("div", { class: "card" }, node("h4", {}, `Voice ${branch + 1}`, branch === detail.branch && node("span", { class: "tag" }, "heard here")),
    turns.map((turn) => node("div", {}, node("p", {}, node("b", {}, `${turn.speaker}, ${turn.emotion}: `), turn.text), clip(turn.clip)))));
  const replies = (item.responses ?? []).map((one, place) => node("div", { class: "card" }, node("h4", {}, `Reply to voice ${place + 1}`, place === detail.chosen && node("span", { class: "tag" }, "chosen")), node("p", {}, one.text), clip(one.clip)));
  const mine = sameItem(browser, row, (other) => columns.model[other] === columns.model[row]);
  return [
    viewHead(browser, row, item),
    node("p", { class: "soft" }, [item.benchmark, item.category, browser.sets[columns.set[row]], columns.trial[row]].filter(Boolean).join(" · ")),
    node("div", { class: "metrics" }, voices, replies),
    facts([["verdict", detail.pred ?? `none (${detail.reason})`], ["right", detail.gold], ["labels", detail.names?.length > 0 && detail.names.map((name, place) => `E${place + 1} ${name}`).join(", ")],
      ["turns right", detail.turns_right === undefined ? null : `${detail.turns_right} of ${detail.n_turns}`], ["R1 is", ["pointwise", "oracle", "staging", "pairwise"].includes(detail.probe) && `the reply to voice ${detail.swapped ? 2 : 1}`],
      ["CA is", detail.probe === "pairwise" && `voice ${detail.contexts_swapped ? 2 : 1}`], ["times asked", detail.n_attempts], ["state (P, O, J)", detail.state]]),
    reply(detail),
    beside(browser, row, "Verdicts on this item under every condition", mine, [
      { title: "Condition", of: (other) => [browser.sets[columns.set[other]], columns.trial[other]].filter(Boolean).join(", ") }, { title: "Verdict", of: (other) => columns.answer[other] ?? "–" }]),
  ].flat(2).filter(Boolean);
}
