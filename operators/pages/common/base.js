"use strict";
// Shared by all pages. Data reaches the document only as text nodes and vetted attributes: `node` is the one way in.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "rect", "line", "circle", "text", "title", "polyline", "polygon"]);

/** A new element. Attributes named `on...` must be functions, null ones are left out, true means an empty one. */
function node(tag, attributes = {}, ...children) {
  const made = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Whether the page has a data block of this name. */
function has(name) {
  return document.getElementById(`data-${name}`) !== null;
}

/** The value of the data block `name`, decompressed where it is compressed. */
async function embedded(name) {
  const block = document.getElementById(`data-${name}`);
  if (!block) throw new Error(`this page has no data block ${name}`);
  if (block.type === "application/json") return JSON.parse(block.textContent);
  const bytes = Uint8Array.from(atob(block.textContent), (letter) => letter.charCodeAt(0));
  const unzip = new DecompressionStream("gzip");
  const writer = unzip.writable.getWriter();
  const written = Promise.all([writer.write(bytes), writer.close()]);
  const value = await new Response(unzip.readable).json();
  await written;
  return value;
}

/** Saves `text` as a file of the reader's. */
function download(name, text, kind = "application/json") {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  node("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** A number for reading; an absent one is a dash. */
function shown(value, digits = 3) {
  return value === null || value === undefined ? "–" : Number(value).toFixed(digits);
}

/** A table in a box that scrolls by itself. `heads`, `rows`: elements of the head's one row, and of the body. */
function grid(caption, heads, rows, look = null) {
  return node("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    node("table", { class: look }, node("caption", {}, node("span", {}, caption)), node("thead", {}, node("tr", {}, heads)), node("tbody", {}, rows)));
}

/** On paper nothing can be unfolded: details are open while the page prints. */
function unfoldForPrint() {
  let closed = [];
  addEventListener("beforeprint", () => { closed = [...document.querySelectorAll("details:not([open])")]; for (const one of closed) one.open = true; });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });
}

/** Makes `button` switch between the system's colours, light and dark; the choice is kept where the browser allows. */
function themeSwitch(button) {
  const themes = ["auto", "light", "dark"];
  const kept = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                 set: (theme) => { try { localStorage.setItem("theme", theme); } catch { /* private window */ } } };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = `Colours: ${theme}`;
  };
  let current = themes.includes(kept.get()) ? kept.get() : "auto";
  apply(current);
  button.addEventListener("click", () => {
    current = themes[(themes.indexOf(current) + 1) % themes.length];
    kept.set(current);
    apply(current);
  });
}
