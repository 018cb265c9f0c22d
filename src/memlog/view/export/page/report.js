// The page: what is chosen above, and what follows from it below.

const element = (id) => document.getElementById(id);
const kDeep = 24;  // boxes on each other

class Page {
  constructor(data) {
    this.data = data;
    this.state = data.peak?.first ? kPeak : data.reports.length;
    this.base = null;  // a state, or null: nothing
    this.measure = kMeasures.live;
    this.timeline = new Timeline(element('timeline'), element('moment'), data,
        (state, isBase) => this.choose(isBase ? this.state : state, isBase ? state : this.base),
        data.lives && ((from, to) => this.brush(data.intervalOf(from, to))));
    this.interval = data.lives && [0, data.lives.count - 1];
    this.table = new StackTable(element('stacks'), element('count'), element('more'), data);
    element('libraries').checked = data.allFrames;
    this.describe();
    this.listen();
    this.choose(this.state, this.base);
  }

  describe() {
    const {command, pid, host, remarks, reports} = this.data;
    element('about').textContent = [
      command, `pid ${pid}`, host && `on ${host}`,
      this.data.lives ? 'an event log' : countText(reports.length, 'report'),
      `${this.data.lives ? 'until' : 'the last taken'} ${timeText(reports.at(-1).taken)}`,
    ].filter((text) => text !== '').join(', ');
    element('resident-key').hidden =
        this.data.samples.length === 0 && this.data.reports.every(({rss}) => rss === null);
    element('curve-end').textContent = this.data.curveEnd();
    element('remarks').append(...remarks.map((text) => make('li', {}, text)));
    const options = this.data.stops().map(
        (state) => make('option', {value: state}, this.data.title(state)));
    element('report').append(...options);
    element('base').append(make('option', {value: ''}, 'nothing: what is live'));
    if (this.data.before) element('base').append(make('option', {value: 0}, this.data.title(0)));
    element('base').append(...options.map((option) => option.cloneNode(true)));
    this.offerMeasures();
    this.offerThreads();
  }

  offerMeasures() {
    for (const [key, {title, of: turnover, lived}] of Object.entries(kMeasures)) {
      const known = lived ? this.data.lives !== null :
          turnover ? this.data.stacks.some((stack) => turnover(stack.turnover) !== 0) :
              key === 'live' || this.data.blocks;
      if (known) element('measure').append(make('option', {value: key}, title));
      if (key === 'live' && this.data.peak) {
        element('measure').append(make('option', {value: 'peak'}, 'held at the peak'));
      }
    }
  }

  offerThreads() {
    const beginnings = this.data.beginnings();
    element('thread-choice').hidden = beginnings.filter((name) => name !== null).length < 2;
    element('thread').append(make('option', {value: ''}, 'all'),
        ...beginnings.map((name, i) => make('option', {value: i}, name ?? 'not known')));
    this.beginnings = beginnings;
  }

  listen() {
    const read = () => {
      const base = element('base').value;
      this.choose(Number(element('report').value), base === '' ? null : Number(base));
    };
    element('report').onchange = read;
    element('base').onchange = read;
    element('choice').onsubmit = (event) => event.preventDefault();
    element('search').oninput = () => this.search();
    element('measure').onchange = () => this.view(element('measure').value);
    element('thread').onchange = () => this.show();
    element('interval-choice').hidden = !this.data.lives;
    const write = () => {
      const [from, to] = [element('from').valueAsNumber, element('to').valueAsNumber];
      if (from < to) this.brush(this.data.intervalOf(from, to));
    };
    element('from').onchange = write;
    element('to').onchange = write;
    element('whole').onclick = () => this.brush([0, this.data.lives.count - 1]);
    for (const id of ['flame', 'icicle']) {
      element(id).onchange = () => {
        this.shape = id;
        this.graph.turn(id === 'icicle');
      };
    }
    element('inverted').onchange = () => this.redraw();
    element('libraries').onchange = () => {
      this.data.show(element('libraries').checked);
      this.redraw();
    };
    element('reset').onclick = () => this.graph.zoom(this.graph.boxes[0]);
    window.onresize = () => {
      this.timeline.draw(this.state, this.base, this.shownInterval());
      this.graph.layout();
      this.drawSizes();
    };
    document.onkeydown = (event) => {
      if (event.key !== '/' || event.target.matches('input, select')) return;
      event.preventDefault();
      element('search').focus();
    };
  }

  // What is live at the peak is that of a state; all else are measures.
  view(name) {
    this.measure = kMeasures[name === 'peak' ? 'live' : name];
    const state = name === 'peak' ? kPeak :
        this.state === kPeak ? this.data.reports.length : this.state;
    this.choose(state, name === 'peak' ? null : this.base);
  }

  // An interval of the log; what was allocated there, unless another measure of it is shown.
  brush(interval) {
    this.interval = interval;
    if (!this.measure.lived) this.measure = kMeasures.born;
    this.choose(this.state === kPeak ? this.data.reports.length : this.state, this.base);
  }

  // What the timeline marks: nothing while another measure is shown.
  shownInterval() {
    return this.measure.lived ? this.data.secondsOf(this.interval) : null;
  }

  choose(state, base) {
    // At the peak only bytes are known.
    if (state === kPeak && this.measure !== kMeasures.live) this.measure = kMeasures.live;
    Object.assign(this, {state, base});
    element('report').value = state;
    element('base').value = base ?? '';
    const name = Object.keys(kMeasures).find((key) => kMeasures[key] === this.measure);
    element('measure').value = state === kPeak ? 'peak' : name;
    for (const id of ['report', 'base']) element(id).disabled = !isOfState(this.measure);
    this.timeline.draw(state, base, this.shownInterval());
    if (this.data.lives) {
      const [from, to] = this.data.secondsOf(this.interval);
      element('from').value = from.toFixed(6);
      element('to').value = to.toFixed(6);
    }
    this.listReports();
    this.show();
  }

  // What follows from what is chosen.
  show() {
    const chosen = element('thread').value;
    this.rows = this.data.rows(this.measure, this.state, this.base, this.interval).filter(
        ({stack}) => chosen === '' || stack.begun === this.beginnings[Number(chosen)]);
    const base = isOfState(this.measure) ? this.base : null;
    this.drawing = {
      measure: this.measure,
      // Below 0 there is something even without a base where an estimate is.
      difference: base !== null || this.rows.some((row) => row.width < 0),
      beside: !isOfState(this.measure) || this.data.counts(this.state, base),
    };
    this.redraw();
  }

  redraw() {
    this.drawGraph();
    this.search();
  }

  listReports() {
    const head = ['report', 'seconds', 'live', 'peak', 'delta', 'blocks', 'trigger', 'label'];
    const line = (report, i) => make('tr', i + 1 === this.state ? {'class': 'chosen'} : {},
        ...[
          report.seq, report.seconds.toFixed(3), grouped(report.live),
          report.peak === null ? '' : grouped(report.peak), signed(report.delta),
          grouped(report.blocks), report.trigger, report.label,
        ].map((text) => make('td', {}, String(text))));
    element('reports').replaceChildren(
        make('thead', {}, make('tr', {}, ...head.map((text) => make('th', {scope: 'col'}, text)))),
        make('tbody', {}, ...this.data.reports.map(line)));
  }

  drawGraph() {
    const {measure, difference} = this.drawing;
    drawBoxes(element('graph'), makeTree(this.rows, element('inverted').checked), this.drawing);
    this.graph = new FlameGraph(element('graph'), (text) => {
      element('told').textContent = text.replace('\n', ': ');
    });
    // A deep graph is read from above, unless the reader has chosen.
    const icicle = this.shape ? this.shape === 'icicle' : this.graph.deepest > kDeep;
    element(icicle ? 'icicle' : 'flame').checked = true;
    this.graph.turn(icicle);
    const {grew, shrank} = moved(this.rows);
    element('summary').textContent = difference ?
        `${grew < shrank ? '' : '+'}${measure.text(grew - shrank)}: ` +
            `grew ${grouped(grew)} (red), shrank ${grouped(shrank)} (blue)` :
        measure.text(grew) +
            (measure.of ? ` in ${countText(this.data.reports.length, 'report')}` : '') +
            (measure.lived ? ` between ${this.intervalText()}` : '');
  }

  intervalText() {
    const [from, to] = this.data.secondsOf(this.interval);
    return `${from.toFixed(4)} and ${to.toFixed(4)} s after the start`;
  }

  // Of the stacks that the search finds. Nothing where blocks are not known, or only how they
  // changed.
  drawSizes() {
    const {measure, difference, beside} = this.drawing;
    const exactly = (stack) => !isOfState(measure) ? null : Data.sizesAt(stack, this.state);
    const known = !difference && beside && !measure.lived;
    const classes = known ? sizeHistogram(this.table.rows, exactly) : new Map();
    element('sizes-part').hidden = classes.size === 0;
    if (classes.size === 0) return;
    const average = this.table.rows.some(({stack}) => exactly(stack) === null);
    element('sizes-key').textContent = !average ? 'Sizes are exact, from the event log.' :
        this.data.exactSizes && isOfState(measure) ?
            'Sizes are exact, from the event log; stacks that it does not have count at their ' +
                'average size.' :
            'The blocks of a stack count at their average size: reports do not hold the sizes. ' +
                'memlog export --sizes takes them from an event log; memlog show --sizes reads ' +
                'them from a running process.';
    drawSizes(element('sizes'), classes, isOfState(measure) ? 'block' : 'allocation');
  }

  search() {
    const expression = readExpression(element('search').value);
    element('search').setAttribute('aria-invalid', expression === undefined);
    this.graph.search(expression ?? null);
    this.table.show(this.rows, this.drawing, expression ?? null);
    this.drawSizes();
    element('matched').textContent = this.matchText(expression);
  }

  // Of all stacks, also of those too small to be drawn.
  matchText(expression) {
    if (expression === undefined) return 'not a regular expression';
    if (expression === null) return '';
    const all = moved(this.rows);
    const found = moved(this.table.rows);
    return `matched ${percentText(found.grew + found.shrank, all.grew + all.shrank)} in ` +
        countText(this.table.rows.length, 'stack');
  }
}

new Page(new Data(element('data').textContent));
