"use strict";
// A listener's answers, one case at a time. Order, branch and side of the replies are drawn from the listener's name.

/** Numbers in [0, 1) that follow from `text` alone: FNV-1a as the seed of mulberry32. */
function drawing(text) {
  let state = 2166136261;
  for (const byte of new TextEncoder().encode(text)) state = Math.imul(state ^ byte, 16777619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The cases of one listener in order: every item once, in one drawn branch (or in both), the replies on drawn sides. */
function plan(items, listener, page, bothBranches) {
  const draw = drawing(`${page}|${listener}`);
  const cases = items.flatMap((item, number) => {
    const branches = bothBranches ? [0, 1] : [draw() < 0.5 ? 0 : 1];
    return branches.map((branch) => ({ number, item: item.id, branch, swapped: draw() < 0.5 }));
  });
  for (let last = cases.length - 1; last > 0; last--) {
    const other = Math.floor(draw() * (last + 1));
    [cases[last], cases[other]] = [cases[other], cases[last]];
  }
  return cases;
}

function listening(page, clips) {
  const $ = (id) => document.getElementById(id);
  const kept = {
    get: (key) => { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, JSON.stringify(value)); return true; } catch { return false; } },
  };
  let listener = "", cases = [], answers = {}, at = 0, began = 0, plays = 0, players = [];

  const storeKey = () => `listen:${page.id}:${listener}`;
  const caseKey = (one) => `${one.number}:${one.branch}`;
  const rated = () => cases.filter((one) => answers[caseKey(one)]).length;

  function begin(name) {
    listener = name.trim();
    if (!listener) return;
    cases = plan(page.items, listener, page.id, page.both_branches);
    answers = kept.get(storeKey()) ?? {};
    kept.set(`listen:${page.id}`, listener);
    at = Math.max(0, cases.findIndex((one) => !answers[caseKey(one)]));
    $("start").classList.add("hidden");
    $("task").classList.remove("hidden");
    show();
  }

  function stop() {
    for (const player of players) player.pause();
  }

  /** Plays clips one after the other; what plays is marked. */
  function play(group) {
    stop();
    const next = (place) => {
      if (place >= group.length) return;
      group[place].currentTime = 0;
      group[place].onended = () => next(place + 1);
      group[place].play().catch(() => {});
    };
    next(0);
  }

  function player(clip, label, box) {
    const made = node("audio", { controls: true, preload: "auto", src: clips[clip], "aria-label": label });
    made.addEventListener("play", () => { plays += 1; box.classList.add("playing"); });
    made.addEventListener("pause", () => box.classList.remove("playing"));
    players.push(made);
    box.append(made);
    return made;
  }

  function show() {
    stop();
    players = [];
    plays = 0;
    began = Date.now();
    const one = cases[at], item = page.items[one.number], answer = answers[caseKey(one)];
    $("h-task").textContent = `Case ${at + 1} of ${cases.length}`;
    const turns = item.branches[one.branch].map((turn, place) => {
      const box = node("div", { class: `turn card ${turn.speaker}` }, node("p", {}, node("strong", {}, `${turn.speaker}: `), turn.text));
      player(turn.clip, `turn ${place + 1}, ${turn.speaker}`, box);
      return box;
    });
    $("context").replaceChildren(...turns);
    const replies = [0, 1].map((side) => {
      const reply = item.responses[one.swapped ? 1 - side : side], name = "AB"[side];
      const chosen = answer && answer.chosen !== null && answer.chosen === (one.swapped ? 1 - side : side);
      const box = node("div", { class: "reply card", role: "radio", "aria-checked": String(Boolean(chosen)) },
        node("p", {}, node("strong", {}, `Reply ${name}: `), reply.text));
      player(reply.clip, `reply ${name}`, box);
      box.append(node("p", {}, node("button", { type: "button", onclick: () => choose(side) }, `Choose ${name} (${side + 1})`)));
      return box;
    });
    $("replies").replaceChildren(...replies);
    $("replies").setAttribute("role", "radiogroup");
    $("h-task").focus();
    $("back").disabled = at === 0;
    $("next").disabled = at === cases.length - 1;
    progress();
  }

  function progress() {
    const unsaved = kept.set("listen:probe", 1) ? "" : " This browser keeps nothing: save before you close the page.";
    $("progress").textContent = `${rated()} of ${cases.length} cases answered.${unsaved}`;
    $("save-json").disabled = $("save-csv").disabled = rated() === 0;
  }

  /** Side 0 or 1, or null for "cannot tell". */
  function choose(side) {
    const one = cases[at];
    answers[caseKey(one)] = {
      item_id: one.item, branch: one.branch, swapped: one.swapped, place: at + 1,
      chosen: side === null ? null : one.swapped ? 1 - side : side,
      plays, seconds: (Date.now() - began) / 1000,
    };
    kept.set(storeKey(), answers);
    if (at < cases.length - 1) { at += 1; show(); } else show();
  }

  function move(step) {
    if (at + step < 0 || at + step >= cases.length) return;
    at += step;
    show();
  }

  const ratings = () => cases.map((one) => answers[caseKey(one)]).filter(Boolean);
  const fileName = (ending) => `${page.benchmark}-${listener}`.replace(/[^\w.-]+/g, "_") + ending;

  function saveJson() {
    download(fileName(".json"), JSON.stringify({ page: page.id, benchmark: page.benchmark, listener, n_cases: cases.length, ratings: ratings() }, null, 1));
  }

  function saveCsv() {
    const names = ["page", "benchmark", "listener", "item_id", "branch", "swapped", "place", "chosen", "plays", "seconds"];
    // What a spreadsheet would run as a formula gets an apostrophe, which the reader of these files takes off again.
    const inert = (text) => (/^'*[=+\-@\t\r\n]/.test(text) ? `'${text}` : text);
    const cell = (value) => `"${inert(String(value ?? "")).replaceAll('"', '""')}"`;
    const rows = ratings().map((row) => ({ page: page.id, benchmark: page.benchmark, listener, ...row }));
    download(fileName(".csv"), [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(cell).join(",")).join("\n") + "\n", "text/csv");
  }

  function pressed(event) {
    if ($("task").classList.contains("hidden") || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && event.target.closest("button, audio")) return;
    const n = players.length;
    const actions = {
      " ": () => play(players.slice(0, n - 2)), a: () => play([players[n - 2]]), b: () => play([players[n - 1]]),
      1: () => choose(0), 2: () => choose(1), 0: () => choose(null), ArrowLeft: () => move(-1), ArrowRight: () => move(1),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  $("title").textContent = page.title;
  $("subtitle").textContent = `${page.benchmark}, ${page.items.length} items`;
  document.title = page.title;
  themeSwitch($("theme"));
  $("listener").value = kept.get(`listen:${page.id}`) ?? "";
  $("who").addEventListener("submit", (event) => { event.preventDefault(); begin($("listener").value); });
  $("back").addEventListener("click", () => move(-1));
  $("next").addEventListener("click", () => move(1));
  $("skip").addEventListener("click", () => choose(null));
  $("save-json").addEventListener("click", saveJson);
  $("save-csv").addEventListener("click", saveCsv);
  document.addEventListener("keydown", pressed);
}

(async () => listening(await embedded("listening"), await embedded("clips")))();
