// The functions of rows as a picture that the reader chooses: a flame graph, an icicle graph, or a
// tree to open.

const kDeep = 24;  // boxes on each other
const kShapes = {flame: 'flame graph', icicle: 'icicle', tree: 'tree'};

function choiceBox(id, attributes, text, title = '') {
  return make('label', {title}, make('input', {id, autocomplete: 'off', ...attributes}),
      ` ${text}`);
}

class FunctionPicture {
  // `chooseFrames` is called with whether all frames are to be shown, before redraw().
  constructor(place, chooseFrames) {
    const reset = make('button', {type: 'button', id: 'reset', title: 'Escape in the graph'},
        'reset zoom');
    this.summary = make('span', {id: 'summary'});
    this.told = make('p', {id: 'function'});
    this.svg = makeSvg('svg', {
      id: 'graph', 'class': 'flame', role: 'group', 'aria-label': 'functions, the arrow keys move',
    });
    this.branches = make('div', {id: 'branches'});
    place.append(make('div', {'class': 'tools'},
        ...Object.entries(kShapes).map(([shape, text]) =>
          choiceBox(shape, {type: 'radio', name: 'shape'}, text)),
        choiceBox('inverted', {type: 'checkbox'}, 'inverted',
            'The responsible functions at the root, their callers on them'),
        choiceBox('libraries', {type: 'checkbox'}, 'library frames'), reset, this.summary),
        this.told, this.svg, this.branches);
    for (const shape of Object.keys(kShapes)) {
      at(shape).onchange = () => {
        this.chosen = shape;
        this.turn(shape);
      };
    }
    at('inverted').onchange = () => this.redraw();
    at('libraries').onchange = () => {
      chooseFrames(at('libraries').checked);
      this.redraw();
    };
    reset.onclick = () => this.graph.zoom(this.graph.boxes[0]);
  }

  // `view`: as for numbers().
  draw(rows, view) {
    Object.assign(this, {rows, view});
    this.redraw();
  }

  redraw() {
    this.root = makeTree(this.rows, at('inverted').checked);
    drawBoxes(this.svg, this.root, this.view);
    this.graph = new FlameGraph(this.svg, (text) => {
      this.told.textContent = text.replace('\n', ': ');
    });
    this.search(this.expression ?? null);
    // A deep graph is read from above, unless the reader has chosen.
    this.turn(this.chosen ?? (this.graph.deepest > kDeep ? 'icicle' : 'flame'));
  }

  turn(shape) {
    at(shape).checked = true;
    const isTree = shape === 'tree';
    this.svg.style.display = isTree ? 'none' : '';
    this.branches.replaceChildren(...isTree ? [branchOf(this.root, this.root, this.view)] : []);
    this.graph.turn(shape === 'icicle');
  }

  search(expression) {
    this.expression = expression;
    this.graph.search(expression);
  }
}
