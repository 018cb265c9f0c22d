'use strict';
// A flame graph whose boxes are in the document already: zoom, search, labels, keys.
//
// A box is <svg class="box"> with the attributes data-depth (0: the whole), data-grew and
// data-shrank (bytes or blocks, both counted upward). Boxes stand in the order of a walk from the
// outermost inward, so a box's caller is the last one before it that is a row less deep. The first
// line of its title is the function.

const kRow = 18;    // height of a box in pixels
const kLetter = 7;  // width of a letter

function readBoxes(svg) {
  const path = [];
  return [...svg.querySelectorAll('.box')].map((element) => {
    const depth = Number(element.dataset.depth);
    const caller = depth === 0 ? null : path[depth - 1];
    const box = {
      element, depth, caller,
      text: element.querySelector('title').textContent,
      name: element.querySelector('title').textContent.split('\n')[0],
      width: Number(element.dataset.grew) + Number(element.dataset.shrank),
      start: caller ? caller.end : 0,
      places: Number(element.dataset.places ?? 0),
    };
    box.end = box.start;
    if (caller) caller.end += box.width;
    path[depth] = box;
    return box;
  });
}

function shortened(name, pixels) {
  const room = Math.floor((pixels - 6) / kLetter);
  if (name.length <= room) return name;
  return room < 6 ? '' : name.slice(0, room - 2) + '..';
}

class FlameGraph {
  // `tell` is called with the text of the box that the pointer or the keyboard is on.
  constructor(svg, tell) {
    this.svg = svg;
    this.boxes = readBoxes(svg);
    this.byElement = new Map(this.boxes.map((box) => [box.element, box]));
    this.deepest = this.boxes.reduce((most, box) => Math.max(most, box.depth), 0);
    this.zoomed = this.boxes[0];
    this.icicle = false;
    this.tell = tell;
    this.listen();
    this.boxes[0].element.setAttribute('tabindex', '0');
    this.layout();
  }

  listen() {
    const boxOf = (event) => this.byElement.get(event.target.closest('.box'));
    this.svg.onclick = (event) => {
      if (boxOf(event)) this.enter(boxOf(event));
    };
    this.svg.onmouseover = (event) => this.tell(boxOf(event)?.text ?? '');
    for (const box of this.boxes) box.element.onfocus = () => this.tell(box.text);
    this.svg.onmouseleave = () => this.tell('');
    this.svg.onkeydown = (event) => {
      if (boxOf(event) && this.key(event.key, boxOf(event))) event.preventDefault();
    };
  }

  // Returns whether the key means something here, as the next two do.
  key(key, box) {
    const inward = this.icicle ? 'ArrowDown' : 'ArrowUp';
    const outward = this.icicle ? 'ArrowUp' : 'ArrowDown';
    const beside = this.shown().filter((other) => other.depth === box.depth);
    const at = beside.indexOf(box);
    switch (key) {
      case inward: return this.focus(this.shown().find((other) => other.caller === box));
      case outward: return this.focus(box.caller);
      case 'ArrowLeft': return this.focus(beside[at - 1]);
      case 'ArrowRight': return this.focus(beside[at + 1]);
      case 'Enter': case ' ': return this.enter(box);
      case 'Escape': return this.enter(this.boxes[0]);
      default: return false;
    }
  }

  focus(box, how) {
    if (!box) return true;
    for (const other of this.svg.querySelectorAll('[tabindex="0"]')) {
      other.setAttribute('tabindex', '-1');
    }
    box.element.setAttribute('tabindex', '0');
    box.element.focus(how);
    return true;
  }

  shown() {
    return this.boxes.filter((box) => box.element.style.display !== 'none');
  }

  zoom(box) {
    this.zoomed = box;
    this.layout();
  }

  enter(box) {
    this.zoom(box);
    return this.focus(box, {preventScroll: true});
  }

  turn(icicle) {
    this.icicle = icicle;
    this.layout();
  }

  // Where each box is: those outside of the zoomed one are hidden, its callers are as wide as it.
  layout() {
    const root = this.zoomed;
    const last = root.start + root.width;
    const callers = new Set();
    for (let box = root.caller; box; box = box.caller) callers.add(box);
    const pixels = this.svg.width.baseVal.value;
    for (const box of this.boxes) {
      const above = callers.has(box);
      const inside = box.start >= root.start && box.start + box.width <= last &&
                     box.depth >= root.depth;
      const share = above ? 1 : inside ? box.width / Math.max(root.width, 1) : 0;
      const start = above ? 0 : (box.start - root.start) / Math.max(root.width, 1);
      box.element.style.display = above || (inside && share * pixels >= 0.1) ? '' : 'none';
      box.element.classList.toggle('above', above);
      box.element.setAttribute('x', `${100 * start}%`);
      box.element.setAttribute('width', `${100 * share}%`);
      box.element.setAttribute('y', (this.icicle ? box.depth : this.deepest - box.depth) * kRow);
      box.element.querySelector('text').textContent = shortened(box.name, share * pixels);
    }
  }

  // Marks the boxes whose function matches `expression` (null: none). Returns their share of the
  // whole, those within others not counted twice, and the share of what has no name to look at.
  search(expression) {
    let found = 0;
    let unknown = 0;
    for (const box of this.boxes) {
      const match = expression !== null && box.places === 0 && box.depth > 0 &&
                    expression.test(box.name);
      const within = box.caller !== null && box.caller.matched;
      box.matched = match || within;
      box.element.classList.toggle('match', match);
      if (match && !within) found += box.width;
      if (box.places !== 0 && !within) unknown += box.width;
    }
    const whole = Math.max(this.boxes[0].width, 1);
    return {share: found / whole, unknown: unknown / whole};
  }
}

// The expression that was typed: null for nothing, undefined for one that is none.
function readExpression(text) {
  if (text === '') return null;
  try {
    return new RegExp(text);
  } catch {
    return undefined;
  }
}
