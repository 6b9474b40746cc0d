"use strict";
// Rating chains one by one. Ratings live in this browser under study, group and rater until they are saved as a file.

const ANCHORS = [
  ["Incoherent", "no step follows from another, or nothing of it is about the clip"],
  ["Weak", "little of it is heard in the clip, or the steps mostly do not connect"],
  ["Partly sound", "some is heard and some connects, with gaps or vague steps"],
  ["Good", "mostly what is heard, the steps connect, with a small gap or slip"],
  ["Fully sound", "all of it rests on what is heard, and every step follows"],
];

/** The ratings of both by chain, of two of one chain the one given later: a file may be older than what the browser keeps. */
function laterOf(kept, restored) {
  const newer = Object.entries(restored).filter(([chain, { annotated_at: at }]) => !kept[chain] || (at ?? "") > (kept[chain].annotated_at ?? ""));
  return { ...kept, ...Object.fromEntries(newer) };
}

class Session {
  constructor(data) {
    Object.assign(this, data, { rater: null, ratings: {}, at: 0 });
    this.find = Object.fromEntries(["which", "count", "progress", "welcome", "work", "start", "rater", "restore", "trouble", "anchors", "chain", "buttons", "back", "next", "unrated", "save", "help"].map((id) => [id, document.getElementById(id)]));
    const { find } = this;
    find.which.textContent = `Group ${this.group}, ${this.chains.length} chains.`;
    find.anchors.append(...ANCHORS.map(([name, told]) => node("li", {}, node("b", {}, name), `: ${told}.`)));
    find.start.addEventListener("submit", (event) => { event.preventDefault(); this.begin(find.rater.value.trim()); });
    find.restore.addEventListener("change", () => this.restore(find.restore.files[0]));
    find.back.addEventListener("click", () => this.go(this.at - 1));
    find.next.addEventListener("click", () => this.go(this.at + 1));
    find.unrated.addEventListener("click", () => this.go(this.order.findIndex((code) => !this.ratings[code]?.rating)));
    find.save.addEventListener("click", () => this.save());
    find.help.addEventListener("click", () => { find.welcome.classList.toggle("hidden"); find.welcome.scrollIntoView(); });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  get place() { return `ratings ${this.study} ${this.group} ${this.rater}`; }

  begin(rater, ratings = {}) {
    if (!rater) return;
    this.rater = rater;
    let kept = {};
    try { kept = JSON.parse(localStorage.getItem(this.place) ?? "{}"); } catch { this.find.trouble.textContent = "This browser keeps nothing: save a file before you close the page."; }
    this.ratings = laterOf(kept, ratings);
    this.keep();
    // Raters of a group start at different chains, so that no chain is always met first or last.
    const turn = [...rater].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 9973, 7) % this.chains.length;
    this.order = this.chains.map((chain) => chain.code);
    this.order = this.order.slice(turn).concat(this.order.slice(0, turn));
    this.find.welcome.classList.add("hidden");
    this.find.work.classList.remove("hidden");
    this.go(Math.max(0, this.order.findIndex((code) => !this.ratings[code]?.rating)));
  }

  async restore(file) {
    try {
      const rows = JSON.parse(await file.text());
      const mine = rows.every((row) => row.study === this.study && row.group === this.group && row.rater === rows[0].rater);
      if (!rows.length || !mine) throw new Error("other");
      const said = rows.filter((row) => row.rating || row.annotated_at);  // the others were not met yet when the file was saved
      this.begin(rows[0].rater, Object.fromEntries(said.map((row) => [row.chain, { rating: row.rating, annotated_at: row.annotated_at }])));
    } catch { this.find.trouble.textContent = `That file does not hold ratings of this page (study ${this.study}, group ${this.group}).`; }
  }

  keep() {
    try { localStorage.setItem(this.place, JSON.stringify(this.ratings)); } catch { /* told at the start */ }
  }

  go(at) {
    if (at < 0 || at >= this.order.length) return;
    this.at = at;
    const chain = this.chains.find((one) => one.code === this.order[at]);
    this.find.chain.replaceChildren(
      node("h2", {}, `Chain ${at + 1} of ${this.order.length}`),
      ...chain.clips.map((place) => this.player(this.clips[place])),
      node("h3", {}, chain.question), node("ol", { class: "choices" }, chain.choices.map((choice) => node("li", {}, choice))),
      node("div", { class: "chain", dir: "auto", tabindex: 0, role: "region", "aria-label": "reasoning" }, chain.response));
    this.find.chain.focus({ preventScroll: true });
    scrollTo(0, 0);
    this.paint();
  }

  player(clip) {
    if (clip.missing) return node("p", { class: "bad" }, `${clip.name}: ${clip.missing}.`);
    const audio = node("audio", { controls: true, "aria-label": "clip" });
    if (clip.href) audio.src = clip.href; else embedded(clip.block).then((uri) => { audio.src = uri; });
    return audio;
  }

  paint() {
    const { find } = this;
    const now = this.ratings[this.order[this.at]]?.rating;
    find.buttons.replaceChildren(...ANCHORS.map(([name, told], place) => node("button", { type: "button", "aria-pressed": String(now === place + 1), onclick: () => this.rate(place + 1) },
      node("b", {}, `${place + 1} ${name}`), node("br"), node("span", {}, told))));
    const done = this.order.filter((code) => this.ratings[code]?.rating).length;
    find.count.textContent = `${done} of ${this.order.length} rated.`;
    find.progress.value = done / this.order.length;
    find.back.disabled = this.at === 0;
    find.next.disabled = this.at === this.order.length - 1;
    find.unrated.disabled = done === this.order.length;
  }

  rate(rating) {
    this.ratings[this.order[this.at]] = { rating, annotated_at: new Date().toISOString() };
    this.keep();
    this.paint();
  }

  key(event) {
    if (!this.rater || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input")) return;
    if (/^[1-5]$/.test(event.key)) this.rate(Number(event.key));
    if (event.key === "0") this.rate(null);
    if (event.key === "ArrowRight" && !event.target.matches("audio")) this.go(this.at + 1);
    if (event.key === "ArrowLeft" && !event.target.matches("audio")) this.go(this.at - 1);
    const player = this.find.chain.querySelector("audio");
    if (event.key === "p" && player) { if (player.paused) player.play(); else player.pause(); }
  }

  save() {
    const rows = this.order.map((chain) => ({ study: this.study, group: this.group, rater: this.rater, chain,
      rating: this.ratings[chain]?.rating ?? null, annotated_at: this.ratings[chain]?.annotated_at ?? null }));
    download(`ratings-${this.study}-${this.group}-${this.rater.replace(/[^A-Za-z0-9_-]/g, "_")}.json`, JSON.stringify(rows, null, 1));
  }
}

(async () => {
  const session = new Session(await embedded("study"));
  session.find.rater.focus();
  document.body.dataset.ready = "yes";
})();
