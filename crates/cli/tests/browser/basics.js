// What those who hear a page, or walk it by keys, would miss. Gives lines of what is wrong.
const wrong = [];
const all = (css) => [...document.querySelectorAll(css)];
const shown = (element) => element.checkVisibility({ visibilityProperty: true });
const said = (element) => {
  const by = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)?.textContent ?? "");
  const labels = [...(element.labels ?? [])].map((label) => label.textContent);
  return [element.getAttribute("aria-label") ?? "", element.getAttribute("title") ?? "", element.getAttribute("alt") ?? "", ...by, ...labels].join("").trim();
};
const told = (element) => element.outerHTML.slice(0, 120);
const expect = (holds, words) => { if (!holds) wrong.push(words); };

expect(document.documentElement.lang, "no language");
expect(document.title.trim(), "no title");
for (const css of ["h1", "main", "header.top", "nav[aria-label=Pages]"]) {
  const count = all(css).filter(shown).length;
  expect(count === 1, `${count} of ${css}`);
}
const ids = new Set();
for (const element of all("[id]")) {
  expect(!ids.has(element.id), `the id ${element.id} twice`);
  ids.add(element.id);
}
for (const element of all("input:not([type=hidden]), select, textarea").filter(shown)) expect(said(element), `without a label: ${told(element)}`);
for (const element of all("a[href], button, summary").filter(shown)) {
  expect(element.textContent.trim() || said(element) || element.querySelector("title"), `without a name: ${told(element)}`);
}
for (const element of all("img")) expect(element.hasAttribute("alt"), `without words: ${told(element)}`);
for (const element of all("svg:not(svg svg)").filter(shown)) {
  expect(element.closest("[aria-hidden=true]") || said(element) || element.querySelector("title"), `a drawing without words: ${told(element)}`);
}
for (const element of all("table").filter(shown)) expect(element.querySelector("th"), `a table without headings: ${told(element)}`);
for (const element of all("nav, [role=grid], pre[tabindex], [role=group], [role=region]").concat(all("dialog[open]"))) expect(said(element), `without a name: ${told(element)}`);
for (const element of all("[aria-labelledby], [aria-describedby], [aria-controls]")) {
  for (const kind of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
    for (const id of (element.getAttribute(kind) ?? "").split(/\s+/).filter(Boolean)) expect(document.getElementById(id), `${kind} leads nowhere: ${told(element)}`);
  }
}
const levels = all("h1, h2, h3, h4").filter(shown).map((heading) => Number(heading.tagName[1]));
levels.forEach((level, n) => expect(n === 0 || level <= levels[n - 1] + 1, `a heading of level ${level} after one of ${levels[n - 1]}`));
// What can be operated is reached by the keyboard.
for (const element of all("[tabindex]")) expect(Number(element.getAttribute("tabindex")) <= 0, `out of order: ${told(element)}`);
return wrong.slice(0, 20);
