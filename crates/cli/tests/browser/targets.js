// Targets that are hard to hit (WCAG 2.2, 2.5.8): smaller than 24 pixels and too near to another. And what the keyboard reaches without
// showing it. Gives lines such as `18×14 too near to …: <a …>`.
const LEAST = 24, wrong = [];
const told = (element) => element.outerHTML.slice(0, 110);
const css = "a[href], button, input:not([type=hidden]), select, textarea, summary, [role=gridcell][class], [tabindex='0']";
// A bar of a drawing is where and as long as what it shows, and all of them are rows of its table.
const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.disabled && !element.ownerSVGElement;
const all = [...document.querySelectorAll(css)].filter(shown).map((element) => ({ element, box: element.getBoundingClientRect() }))
  .filter(({ box }) => box.width > 1 && box.height > 1 && box.right > 0 && box.bottom > 0);

// A link in a sentence is as high as its line.
const inSentence = (element) => {
  if (getComputedStyle(element).display !== "inline") return false;
  const words = [...element.parentElement.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("");
  return /\p{L}{2}/u.test(words);
};
const isLarge = ({ width, height }) => width >= LEAST - 0.5 && height >= LEAST - 0.5;
const small = all.filter(({ element, box }) => !isLarge(box) && !inSentence(element) && !element.matches("pre, [role=region], .grid, .wide, .scrolls"));
const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
for (const one of small) {
  const [x, y] = middle(one.box);
  const near = all.find((other) => {
    if (other === one || other.element.contains(one.element) || one.element.contains(other.element)) return false;
    const [left, top] = [Math.max(other.box.left - x, 0, x - other.box.right), Math.max(other.box.top - y, 0, y - other.box.bottom)];
    if (Math.hypot(left, top) < LEAST / 2 - 0.5) return true;
    if (isLarge(other.box)) return false;
    const [a, b] = middle(other.box);
    return small.includes(other) && Math.hypot(a - x, b - y) < LEAST - 0.5;
  });
  if (near) wrong.push(`${Math.round(one.box.width)}×${Math.round(one.box.height)}: ${told(one.element)} is too near to ${told(near.element)}`);
}

for (const { element } of all.filter(({ element }) => element.tabIndex >= 0)) {
  element.focus({ preventScroll: true, focusVisible: true });
  if (document.activeElement !== element) continue;
  const style = getComputedStyle(element);
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) wrong.push(`its focus is not seen: ${told(element)}`);
}
return wrong.slice(0, 8);
