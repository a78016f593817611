// Access to the document for all parts of the page. Text is always inserted as text.

const svgNames = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(svgNames, tag), attributes, children);

// say sets the text of an element if it differs.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// set sets an attribute; null removes it.
export function set(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// calm tells whether the user prefers no motion.
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// ink returns a colour of the style sheet, or any other, for a canvas.
const inks = new Map();
const probe = h("i", { hidden: true });
export function ink(name) {
  if (!inks.has(name)) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = name.includes("(") ? name : `var(--${name})`;
    inks.set(name, getComputedStyle(probe).color);
  }
  return inks.get(name);
}
export const forgetInks = () => inks.clear();

// sheet makes a canvas as sharp as the screen, and returns its context, in CSS pixels.
export function sheet(canvas, width, height) {
  const scale = Math.min(devicePixelRatio || 1, 3);
  const [w, t] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== t) {
    canvas.width = w;
    canvas.height = t;
  }
  const draw = canvas.getContext("2d");
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, width, height);
  return draw;
}

// whenSized tells the room that an element has for its content, at first and when that changes. To read it from the document
// would have the browser lay the page out once more.
export function whenSized(element, tell) {
  new ResizeObserver((entries) => tell(entries.at(-1).contentRect)).observe(element);
}

// whenSeen draws a part of the page only while it is visible, and when it becomes visible.
export function whenSeen(element, draw) {
  let seen = false;
  let owed = false;
  new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    if (!seen || !owed) return;
    owed = false;
    draw();
  }, { rootMargin: "100px" }).observe(element);
  return () => {
    if (seen) draw();
    else owed = true;
  };
}

// once calls a function at most once per frame, however often it is requested. What is requested during drawing is drawn in
// the same frame, since a frame costs more than its drawing; a function must not request itself.
const asked = new Set();
let framed = false;
function frame() {
  try {
    for (const draw of asked) {
      asked.delete(draw);
      draw();
    }
  } finally {
    framed = false;
  }
}
export function once(draw) {
  return () => {
    asked.add(draw);
    if (!framed) requestAnimationFrame(frame);
    framed = true;
  };
}
