// Texts that are hard to read where they stand: less than 4.5 between their colour and what is behind them.
// Gives lines such as `3.2 "words" rgb(…) on rgb(…) in p.soft`.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

// Whatever way a colour is written in, as four numbers from 0 to 1.
const parts = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
};

const over = (above, below) => {
  const alpha = above[3];
  return [0, 1, 2].map((n) => above[n] * alpha + below[n] * (1 - alpha)).concat(1);
};

const luminance = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

const contrast = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};

// What is painted behind an element: its own ground and that of all it stands in.
const ground = (element) => {
  const grounds = [];
  for (let at = element; at; at = at.parentElement) grounds.push(parts(getComputedStyle(at).backgroundColor));
  return grounds.reverse().reduce((below, above) => over(above, below), parts(getComputedStyle(document.documentElement).colorScheme === "dark" ? "#000" : "#fff"));
};

// In a drawing the shape that is painted last before a text, where it stands, is behind it.
const outermost = (drawing) => drawing.ownerSVGElement ? outermost(drawing.ownerSVGElement) : drawing;
const shape = (text, box) => {
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  let found = null;
  for (const one of outermost(text).querySelectorAll("rect, circle, path, polygon, ellipse")) {
    if (!(one.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
    const place = one.getBoundingClientRect(), style = getComputedStyle(one);
    const holds = place.left <= x && x <= place.right && place.top <= y && y <= place.bottom;
    if (holds && style.fill !== "none" && style.visibility !== "hidden") found = one;
  }
  return found;
};

const behind = (element, box) => {
  const drawing = element.ownerSVGElement;
  if (!drawing) return ground(element);
  const under = shape(element, box);
  if (!under) return ground(outermost(drawing));
  const style = getComputedStyle(under), fill = parts(style.fill);
  fill[3] *= Number(style.fillOpacity) * Number(style.opacity);
  return over(fill, ground(outermost(drawing)));
};

const faint = new Set();
const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (words.nextNode()) {
  const element = words.currentNode.parentElement;
  if (!words.currentNode.data.trim() || element.closest("script, style, option, :disabled, title, desc")) continue;
  // What is put aside on purpose, so that a path stands out; it is as plain as all else at one click.
  if (element.closest(".aside, .with-path")) continue;
  if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
  const range = document.createRange();
  range.selectNodeContents(words.currentNode);
  const box = range.getBoundingClientRect();
  if (box.width < 2 || box.height < 2) continue;
  const style = getComputedStyle(element);
  const ink = parts(element.ownerSVGElement ? style.fill : style.color);
  // Text that nobody is meant to see.
  if (ink[3] === 0) continue;
  let opacity = 1;
  for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
  const paper = behind(element, box);
  ink[3] *= opacity;
  const found = contrast(over(ink, paper), paper);
  if (found >= 4.5) continue;
  const colour = (of) => `rgb(${of.slice(0, 3).map((part) => Math.round(part * 255)).join(",")})`;
  const name = element.tagName.toLowerCase() + (element.getAttribute("class") ? `.${element.getAttribute("class").trim().replace(/\s+/g, ".")}` : "");
  faint.add(`${found.toFixed(2)} ${JSON.stringify(words.currentNode.data.trim().slice(0, 30))} ${colour(over(ink, paper))} on ${colour(paper)} in ${name}`);
}
return [...faint].slice(0, 20);
