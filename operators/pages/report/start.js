"use strict";
// The page itself: the overview first, so that it is seen at once, then the item browser.

(async () => {
  const about = await embedded("about");
  document.getElementById("title").textContent = about.title;
  document.getElementById("about").textContent = about.told;
  document.getElementById("foot").textContent = about.foot;
  themeSwitch(document.getElementById("theme"));
  const place = document.getElementById("sections");
  if (has("overview")) place.append(...overview(await embedded("overview")));
  if (has("sections")) place.append(...plainSections(await embedded("sections")));
  if (has("index")) {
    const items = document.getElementById("items");
    items.classList.remove("hidden");
    const browser = new Browser(await embedded("index"), (await embedded("overview")).labels);
    browser.apply();
    await browser.fromHash();
  }
  document.getElementById("nav").append(...[...document.querySelectorAll("main section:not(.hidden)")].map((part) => node("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)));
  document.body.dataset.ready = "yes";
})();
