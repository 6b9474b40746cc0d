"use strict";
// The item browser: 18,000 rows in a list of which only the visible ones exist, filtered over columns of numbers.

const OUTCOMES = { all: "all", right: "right", wrong: "wrong answer", none: "no answer", failed: "not scored (no ARIA)", differ: "extractors differ" };

const LISTED = 250000; // rows of 62 px: Firefox draws no element higher than 17.8 million

class Browser {
  static all = [];

  /** `data`: what the page's index block holds; `place`: the section that the browser fills, a copy of the page's own
   * where there are several, with `suffix` behind every id. */
  constructor(data, place, suffix) {
    Object.assign(this, data, { place, order: [], at: -1, texts: null, blocks: new Map() });
    Browser.all.push(this);
    this.size = this.columns.item.length;
    this.find = Object.fromEntries(["q", "deep", "set", "model", "category", "outcome", "reason", "sort", "clear", "count", "list", "rows", "detail", "controls"].map((id) => [id, document.getElementById(id + suffix)]));
    this.itemTexts = this.items.map((item) => [item.item_id, item.question, item.category, item.task, item.groups, item.benchmark, ...(item.choices ?? [])].join("\n").toLowerCase());
    this.fillControls();
    this.listen();
    this.rowHeight = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
  }

  fillControls() {
    const options = (select, pairs) => select.replaceChildren(...pairs.map(([value, text]) => node("option", { value }, text)));
    const sorted = (values) => [...new Set(values)].filter((value) => value !== null).sort();
    options(this.find.model, [["", "all"], ...this.models.map((name) => [name, name])]);
    const of = (item) => item.category ?? null;
    this.categories = [...(this.items.some((item) => of(item) === null) ? [null] : []), ...sorted(this.items.map(of))];
    options(this.find.category, [["", "all"], ...this.categories.map((name, number) => [number, name ?? "(none)"])]);
    options(this.find.set, [["", "all"], ...this.sets.map((name, number) => [number, name])]);
    this.find.set.parentElement.classList.toggle("hidden", this.sets.length < 2);
    options(this.find.outcome, this.outcomes.map((name) => [name, OUTCOMES[name]]));
    options(this.find.reason, [["", "all"], ...sorted(this.columns.reason).map((name) => [name, name])]);
    const measures = Object.keys(this.labels);
    options(this.find.sort, [["", "as in the run"], ...measures.flatMap((name) => [[`${name} up`, `${this.labels[name]}, lowest first`], [`${name} down`, `${this.labels[name]}, highest first`]])]);
  }

  listen() {
    const { find } = this;
    find.controls.addEventListener("submit", (event) => event.preventDefault());
    find.q.addEventListener("input", () => this.apply());
    for (const select of [find.set, find.model, find.category, find.outcome, find.reason, find.sort]) select.addEventListener("change", () => this.apply());
    find.deep.addEventListener("change", async () => { if (find.deep.checked) await this.readResponses(); this.apply(); });
    find.clear.addEventListener("click", () => { find.controls.reset(); this.apply(); });
    find.list.addEventListener("scroll", () => this.paint(), { passive: true });
    find.list.addEventListener("keydown", (event) => this.key(event));
    find.rows.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.open(Number(row.dataset.place), true);
    });
    document.addEventListener("keydown", (event) => this.globalKey(event));
    this.place.addEventListener("focusin", () => { Browser.current = this; });
    addEventListener("hashchange", () => this.fromHash());
    addEventListener("resize", () => this.paint());
  }

  // --- filter and sort ---------------------------------------------------------------------------------------------

  /** Rows that pass every control, in the chosen order. */
  apply() {
    const { find, columns } = this;
    const needle = find.q.value.trim().toLowerCase();
    const model = find.model.value === "" ? -1 : this.models.indexOf(find.model.value);
    const set = find.set.value === "" ? -1 : Number(find.set.value);
    const category = find.category.value === "" ? undefined : this.categories[Number(find.category.value)], outcome = find.outcome.value, reason = find.reason.value;
    const inItem = needle ? this.itemTexts.map((text) => text.includes(needle)) : null;
    const inModel = needle ? this.models.map((name) => name.toLowerCase().includes(needle)) : null;
    const responses = needle && find.deep.checked ? this.texts : null;
    const kept = [];
    let unread = 0;
    for (let row = 0; row < this.size; row++) {
      if (model >= 0 && columns.model[row] !== model) continue;
      if (set >= 0 && columns.set[row] !== set) continue;
      if (category !== undefined && (this.items[columns.item[row]].category ?? null) !== category) continue;
      if (outcome !== "all" && !this.has(row, outcome)) continue;
      if (reason && columns.reason[row] !== reason) continue;
      if (needle && !inItem[columns.item[row]] && !inModel[columns.model[row]]) {
        if (responses && responses[row] === null) unread += 1;
        if (!responses?.[row]?.includes(needle)) continue;
      }
      kept.push(row);
    }
    const all = this.sorted(kept);
    this.order = all.slice(0, LISTED);
    this.at = this.current === undefined ? -1 : this.order.indexOf(this.current);
    find.rows.style.height = `${this.order.length * this.rowHeight}px`;
    find.list.scrollTop = this.at < 0 ? 0 : Math.max(0, (this.at - 3) * this.rowHeight);
    const more = all.length > LISTED ? ` The list ends after ${LISTED.toLocaleString("en")}: filter to see others.` : "";
    const apart = unread ? ` The responses of ${unread.toLocaleString("en")} more are not in this page and were not searched (embed_text_mb= lets them in).` : "";
    find.count.textContent = `${all.length.toLocaleString("en")} of ${this.size.toLocaleString("en")} ${this.noun}.${apart}${more}`;
    this.paint();
  }

  has(row, outcome) {
    const { columns } = this;
    if (outcome === "right") return columns.correct[row] === true;
    if (outcome === "wrong") return columns.correct[row] === false && columns.answer[row] !== null;
    if (outcome === "none") return columns.answer[row] === null;
    if (outcome === "failed") return columns[this.headline][row] === null;
    return columns.answer[row] !== columns.answer_paper[row];
  }

  /** `rows` by the chosen measure; rows without it come last either way. */
  sorted(rows) {
    const [name, way] = this.find.sort.value.split(" ");
    if (!name) return rows;
    const values = this.columns[name], sign = way === "up" ? 1 : -1;
    const missing = rows.filter((row) => values[row] === null);
    return rows.filter((row) => values[row] !== null).sort((a, b) => sign * (values[a] - values[b]) || a - b).concat(missing);
  }

  /** Every response in lower case, for the search, null for one left out of the page; block by block, so that the page stays alive. */
  async readResponses() {
    if (this.texts) return;
    const texts = [];
    const total = Math.ceil(this.size / this.rows_per_block);
    for (let number = 0; number < total; number++) {
      const block = await embedded(`${this.block_prefix}-${number}`);
      for (const row of block) texts.push(row.response_left_out === undefined ? (row.response ?? "").toLowerCase() : null);
      this.find.count.textContent = `Reading responses: ${number + 1} of ${total} blocks.`;
    }
    this.texts = texts;
  }

  // --- the list ----------------------------------------------------------------------------------------------------

  /** Puts the visible rows, and a few beside them, into the document. */
  paint() {
    const { list, rows } = this.find;
    const from = Math.max(0, Math.floor(list.scrollTop / this.rowHeight) - 4);
    const to = Math.min(this.order.length, Math.ceil((list.scrollTop + list.clientHeight) / this.rowHeight) + 4);
    const made = [];
    for (let place = from; place < to; place++) made.push(this.line(place));
    rows.replaceChildren(...made);
    const active = this.at >= from && this.at < to ? this.rowId(this.at) : "";
    if (active) list.setAttribute("aria-activedescendant", active); else list.removeAttribute("aria-activedescendant");
  }

  line(place) {
    const row = this.order[place], { columns } = this;
    const item = this.items[columns.item[row]];
    const [sign, kind, said] = this.verdict(row);
    const trial = typeof columns.trial[row] === "number" && columns.trial[row] ? ` #${columns.trial[row]}` : "";
    const told = [this.sets.length > 1 && this.sets[columns.set[row]], typeof columns.trial[row] === "string" && columns.trial[row]].filter(Boolean).join(", ");
    const made = node("div", { class: "row", id: this.rowId(place), role: "option", "aria-selected": String(place === this.at), "aria-setsize": this.order.length, "aria-posinset": place + 1, "data-place": place },
      node("div", { class: "first" }, node("span", { class: kind, title: said }, sign, node("span", { class: "only-read" }, said)),
        node("span", { class: "who" }, node("b", {}, item.item_id), ` ${this.models[columns.model[row]]}${trial}`),
        this.bars.length > 0 && this.drawnBars(row), node("span", { class: "value", title: this.labels[this.headline] }, shown(columns[this.headline][row], 2))),
      node("div", { class: "second" }, [told, item.question].filter(Boolean).join(": ")));
    made.style.top = `${place * this.rowHeight}px`;
    return made;
  }

  rowId(place) { return `${this.find.rows.id}-${place}`.replace("rows", "row"); }

  /** Six little bars, M1 to M6. */
  drawnBars(row) {
    return node("svg", { width: 44, height: 16, "aria-hidden": "true" }, this.bars.map((name, place) => {
      const value = this.columns[name][row];
      const height = value === null ? 16 : Math.max(1, 16 * value);
      return node("rect", { x: place * 7.5, width: 6, y: 16 - height, height, fill: value === null ? "var(--line)" : "var(--c1)" });
    }));
  }

  verdict(row) {
    const { correct, answer } = this.columns;
    if (correct[row] === true) return ["✓", "right", "right"];
    if (answer[row] === null) return ["–", "none", this.columns.reason[row] ?? "no answer"];
    return correct[row] === false ? ["✗", "wrong", "wrong"] : ["?", "none", "cannot be judged"];
  }

  // --- moving and opening ------------------------------------------------------------------------------------------

  key(event) {
    const page = Math.max(1, Math.floor(this.find.list.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -this.size, End: this.size };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      event.preventDefault();
      this.open(Math.min(this.order.length - 1, Math.max(0, this.at + steps[event.key])), false);
    } else if (event.key === "Enter" && this.at >= 0) {
      event.preventDefault();
      this.open(this.at, true);
    }
  }

  globalKey(event) {
    if (this !== (Browser.current ?? Browser.all[0])) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape") this.back();
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); this.find.q.focus(); }
    const player = this.find.detail.querySelector("audio");
    if (event.key === "p" && player) { if (player.paused) player.play(); else player.pause(); }
  }

  /** Shows the row at `place` of the list; with `enter` the reader goes there. */
  async open(place, enter) {
    if (place < 0 || place >= this.order.length) return;
    Browser.current = this;
    this.at = place;
    this.current = this.order[place];
    const { list } = this.find;
    const top = place * this.rowHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + this.rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + this.rowHeight - list.clientHeight;
    this.paint();
    await this.show(this.current, enter);
  }

  async show(row, enter) {
    const detail = await this.detailOf(row);
    if (row !== this.current) return;
    const { columns } = this;
    const item = this.items[columns.item[row]];
    history.replaceState(null, "", this.link(row));
    this.find.detail.replaceChildren(...VIEWS[this.kind](this, row, item, detail));
    this.find.detail.scrollTop = 0;
    if (enter) {
      this.find.detail.classList.add("open");
      document.body.classList.add("reading");
      this.find.detail.focus({ preventScroll: true });
    }
  }

  /** The address of a row: which run (of an ARIA page: all), item, model, series and trial. */
  link(row) {
    const { columns } = this;
    const item = this.items[columns.item[row]];
    const named = { item: item.item_id, benchmark: item.benchmark ?? "", model: this.models[columns.model[row]], trial: columns.trial[row] ?? 0 };
    if (this.run) Object.assign(named, { run: this.run, series: this.sets[columns.set[row]] });
    return `#${new URLSearchParams(named)}`;
  }

  async detailOf(row) {
    const number = Math.floor(row / this.rows_per_block);
    if (!this.blocks.has(number)) {
      if (this.blocks.size > 20) this.blocks.clear();
      this.blocks.set(number, embedded(`${this.block_prefix}-${number}`));
    }
    return (await this.blocks.get(number))[row % this.rows_per_block];
  }

  back() {
    this.find.detail.classList.remove("open");
    document.body.classList.remove("reading");
    this.find.list.focus({ preventScroll: true });
  }

  /** Opens what the address names: #item=..., and of several rows the one of `model`, `benchmark` and `trial`. */
  async fromHash() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (!wanted.has("item") || (wanted.get("run") ?? undefined) !== this.run) return;
    Browser.current = this;
    const { columns } = this;
    const fits = (row) => {
      const item = this.items[columns.item[row]];
      return item.item_id === wanted.get("item") && (!wanted.get("benchmark") || item.benchmark === wanted.get("benchmark")) &&
        (!wanted.has("model") || this.models[columns.model[row]] === wanted.get("model")) && (!wanted.has("trial") || String(columns.trial[row] ?? 0) === wanted.get("trial")) && (!wanted.has("series") || this.sets[columns.set[row]] === wanted.get("series"));
    };
    const row = columns.item.findIndex((_, place) => fits(place));
    if (row < 0) { this.find.count.textContent = `This report has no ${this.kind === "aria" ? "response to" : `${this.noun.slice(0, -1)} about`} ${wanted.get("item")} of that model.`; return; }
    this.current = row;
    if (!this.order.includes(row)) this.find.controls.reset();
    this.apply();
    if (!this.order.includes(row)) { this.find.q.value = wanted.get("item"); this.apply(); }
    this.place.scrollIntoView();
    await this.open(this.order.indexOf(row), true);
  }
}
