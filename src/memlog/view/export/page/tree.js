// Stacks as a tree of functions, and its boxes; flame_graph.cc of
// src/memlog/export do the same for SVG files.

const kLeast = 0.0002;  // of the width: what is narrower does not stand for itself

function makeNode(name) {
  return {name, grew: 0, shrank: 0, beside: 0, places: 0, kept: 0, children: new Map()};
}

function addTo(node, row) {
  if (row.width > 0) node.grew += row.width;
  else node.shrank -= row.width;
  node.beside += row.beside;
}

function widthOf(node) {
  return node.grew + node.shrank;
}

// From main inward, or inverted: from the responsible functions to their callers.
function makeTree(rows, inverted) {
  const root = makeNode('all');
  for (const row of rows) {
    let node = root;
    addTo(node, row);
    const {frames, folded, kept} = row.stack;
    for (const {name} of inverted ? frames : frames.toReversed()) {
      if (!node.children.has(name)) node.children.set(name, makeNode(name));
      node = node.children.get(name);
      addTo(node, row);
    }
    // By runtimes, and folded.
    if (kept && frames === folded) for (const one of [root, node]) one.kept += Math.abs(row.width);
  }
  return root;
}

// The children to be drawn: the widest first, what runtimes keep after the others, those below
// `least` as one at the end.
function shownChildren(node, least) {
  const children = [...node.children.values()].filter((child) => widthOf(child) > 0);
  const wide = children.filter((child) => widthOf(child) >= least);
  const narrow = children.filter((child) => widthOf(child) < least);
  wide.sort((a, b) => a.kept - b.kept || widthOf(b) - widthOf(a) || (a.name < b.name ? -1 : 1));
  if (narrow.length === 0) return wide;
  const rest = makeNode(`in ${countText(narrow.length, 'place')}`);
  rest.places = narrow.length;
  for (const {grew, shrank, beside} of narrow) {
    rest.grew += grew;
    rest.shrank += shrank;
    rest.beside += beside;
  }
  return [...wide, rest];
}

function colour(node, depth, difference) {
  if (difference) {
    return `d${Math.round(4 + 4 * (node.grew - node.shrank) / Math.max(widthOf(node), 1))}`;
  }
  if (node.places !== 0 || depth === 0 || node.kept !== 0) return 'rest';
  let hash = 0;
  for (const letter of node.name) hash = (Math.imul(hash, 31) + letter.codePointAt(0)) >>> 0;
  return `c${hash % 8}`;
}

// `view`: {measure, difference, beside}: whether numbers have signs, and whether both are known.
function numbers(node, whole, view) {
  const {grew, shrank, beside} = node;
  const {measure, difference} = view;
  const percent = percentText(grew + shrank, whole);
  const sign = (number) => difference && number >= 0 ? '+' : '';
  const text = difference ?
      `${sign(grew - shrank)}${measure.text(grew - shrank)}: grew ${grouped(grew)}, ` +
          `shrank ${grouped(shrank)} (${percent} of what moved)` :
      `${measure.text(grew)} (${percent})`;
  return view.beside ? `${text}, ${sign(beside)}${measure.besideText(beside)}` : text;
}

function drawBoxes(svg, tree, view) {
  const whole = widthOf(tree);
  const boxes = [];
  let deepest = 0;
  const draw = (node, depth) => {
    deepest = Math.max(deepest, depth);
    const attributes = {
      'class': `box ${colour(node, depth, view.difference)}`, 'data-depth': depth,
      'data-grew': node.grew, 'data-shrank': node.shrank, height: kRow,
    };
    if (node.places !== 0) attributes['data-places'] = node.places;
    boxes.push(makeSvg('svg', attributes,
        makeSvg('title', {}, `${node.name}\n${numbers(node, whole, view)}`),
        makeSvg('rect', {width: '100%', height: kRow - 1}),
        makeSvg('text', {x: 3, y: 13})));
    for (const child of shownChildren(node, kLeast * whole)) draw(child, depth + 1);
  };
  draw(tree, 0);
  svg.replaceChildren(...boxes);
  svg.setAttribute('height', (deepest + 1) * kRow);
}

// A row for the node, and those below it once it is opened. The way to most of the whole, without
// what runtimes keep, is open.
function branchOf(node, root, view) {
  const share = widthOf(node) / Math.max(1, widthOf(root));
  const bar = makeSvg('svg', {'class': 'share', viewBox: '0 0 100 10', 'aria-hidden': true},
      makeSvg('rect', {width: 100 * share, height: 10}));
  const text = [bar, node.name, make('span', {'class': 'place'},
      ` ${numbers(node, widthOf(root), view)}`)];
  const below = shownChildren(node, kLeast * widthOf(root));
  if (below.length === 0) return make('p', {'class': 'leaf'}, ...text);
  const branch = make('details', {'class': 'branch'}, make('summary', {}, ...text));
  branch.ontoggle = () => {
    branch.ontoggle = null;
    branch.append(...below.map((child) => branchOf(child, root, view)));
  };
  branch.open = widthOf(node) >= (widthOf(root) - root.kept) / 2;
  return branch;
}
