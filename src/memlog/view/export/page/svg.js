// What an SVG file has around its flame graph where scripts may run: a field to search by, a button
// back to the whole, and a line that tells of the box under the pointer.

const kXhtml = 'http://www.w3.org/1999/xhtml';
const kBar = 56;  // height in pixels

function xhtml(name, attributes, parent) {
  const element = document.createElementNS(kXhtml, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

// Moves the graph down and returns what now stands above it.
function makeBar(graph) {
  const root = document.documentElement;
  const top = Number(graph.getAttribute('y'));
  const bar = document.createElementNS(graph.namespaceURI, 'foreignObject');
  for (const [key, value] of Object.entries({x: '0.8%', y: top, width: '98.4%', height: kBar})) {
    bar.setAttribute(key, value);
  }
  root.insertBefore(bar, graph);
  graph.setAttribute('y', top + kBar);
  root.setAttribute('height', Number(root.getAttribute('height')) + kBar);
  return xhtml('div', {class: 'bar'}, bar);
}

function showMatches(graph, field, output) {
  const expression = readExpression(field.value);
  field.setAttribute('aria-invalid', expression === undefined);
  const {share, unknown} = graph.search(expression ?? null);
  if (expression === undefined) {
    output.textContent = 'not a regular expression';
  } else if (expression === null) {
    output.textContent = '';
  } else {
    output.textContent = `matched ${(100 * share).toFixed(2)}%` +
        (unknown >= 0.0001 ? `; too small to be searched: ${(100 * unknown).toFixed(2)}%` : '');
  }
}

function start() {
  const svg = document.getElementById('graph');
  const bar = makeBar(svg);
  const field = xhtml('input', {
    type: 'search', id: 'search', size: 28, spellcheck: false, autocomplete: 'off',
    placeholder: 'regular expression', 'aria-label': 'search functions', title: 'Ctrl-F',
  }, bar);
  const reset = xhtml('button', {type: 'button', id: 'reset', title: 'Escape'}, bar);
  reset.textContent = 'reset zoom';
  const output = xhtml('output', {id: 'matched'}, bar);
  const line = xhtml('div', {id: 'told'}, bar);

  const graph = new FlameGraph(svg, (text) => { line.textContent = text.replace('\n', ': '); });
  field.oninput = () => showMatches(graph, field, output);
  reset.onclick = () => graph.zoom(graph.boxes[0]);
  window.onresize = () => graph.layout();
  window.onkeydown = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'f') {
      event.preventDefault();
      field.focus();
      field.select();
    }
  };
}

start();
