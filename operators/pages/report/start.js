"use strict";
// The page itself: the overview first, so that it is seen at once, then the item browser.

/** Fills the page's browser with the first index, and copies of it, under ids of their own, with the others. */
async function browse({ block, title }, number, pattern) {
  const suffix = number ? `-${number}` : "";
  const place = number ? pattern.cloneNode(true) : document.getElementById("items");
  if (number) {
    for (const part of [place, ...place.querySelectorAll("[id]")]) part.id += suffix;
    place.setAttribute("aria-labelledby", `items-title${suffix}`);
    document.getElementById("main").append(place);
  }
  place.classList.remove("hidden");
  place.querySelector("h2").textContent = title;
  const browser = new Browser(await embedded(block), place, suffix);
  browser.apply();
  await browser.fromHash();
}

(async () => {
  const about = await embedded("about");
  document.getElementById("title").textContent = about.title;
  document.getElementById("about").textContent = about.told;
  document.getElementById("foot").textContent = about.foot;
  themeSwitch(document.getElementById("theme"));
  unfoldForPrint();
  const place = document.getElementById("sections");
  if (has("overview")) place.append(...overview(await embedded("overview")));
  if (has("sections")) place.append(...plainSections(await embedded("sections")));
  const pattern = document.getElementById("items").cloneNode(true);
  for (const [number, about] of (await embedded("browsers")).entries()) await browse(about, number, pattern);
  document.getElementById("nav").append(...[...document.querySelectorAll("main section:not(.hidden)")].map((part) => node("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)));
  document.body.dataset.ready = "yes";
})();
