// The page: what is chosen above, and what follows from it below.


class Page {
  constructor(data) {
    this.data = data;
    this.state = data.peak?.first ? kPeak : data.reports.length;
    this.base = null;  // a state, or null: nothing
    this.measure = kMeasures.live;
    this.timeline = new Timeline(at('timeline'), at('moment'), data,
        (state, isBase) => this.choose(isBase ? this.state : state, isBase ? state : this.base));
    this.table = new StackTable(at('stacks'), at('count'), at('more'), data);
    this.picture = new FunctionPicture(at('picture'), (all) => {
      data.show(all);
      this.search();
    });
    at('libraries').checked = data.allFrames;
    this.describe();
    this.listen();
    this.choose(this.state, this.base);
  }

  describe() {
    const {command, pid, host, remarks, reports} = this.data;
    at('about').textContent = [
      command, `pid ${pid}`, host && `on ${host}`,
      this.data.ofLog ? 'an event log' : countText(reports.length, 'report'),
      `${this.data.ofLog ? 'until' : 'the last taken'} ${timeText(reports.at(-1).taken)}`,
    ].filter((text) => text !== '').join(', ');
    at('resident-key').hidden =
        this.data.samples.length === 0 && this.data.reports.every(({rss}) => rss === null);
    at('curve-end').textContent = this.data.curveEnd();
    at('remarks').append(...remarks.map((text) => make('li', {}, text)));
    const options = this.data.stops().map(
        (state) => make('option', {value: state}, this.data.title(state)));
    at('report').append(...options);
    at('base').append(make('option', {value: ''}, 'nothing: what is live'));
    if (this.data.before) at('base').append(make('option', {value: 0}, this.data.title(0)));
    at('base').append(...options.map((option) => option.cloneNode(true)));
    at('measure').append(...measureOptions(this.data));
    this.offerThreads();
  }

  offerThreads() {
    const beginnings = this.data.beginnings();
    at('thread-choice').hidden = beginnings.filter((name) => name !== null).length < 2;
    at('thread').append(make('option', {value: ''}, 'all'),
        ...beginnings.map((name, i) => make('option', {value: i}, name ?? 'not known')));
    this.beginnings = beginnings;
  }

  listen() {
    const read = () => {
      const base = at('base').value;
      this.choose(Number(at('report').value), base === '' ? null : Number(base));
    };
    at('report').onchange = read;
    at('base').onchange = read;
    at('choice').onsubmit = (event) => event.preventDefault();
    at('search').oninput = () => this.search();
    at('measure').onchange = () => this.view(at('measure').value);
    at('thread').onchange = () => this.show();
    window.onresize = () => {
      this.timeline.draw(this.state, this.base);
      this.picture.graph.layout();
      this.drawSizes();
    };
    document.onkeydown = (event) => {
      if (event.key !== '/' || event.target.matches('input, select')) return;
      event.preventDefault();
      at('search').focus();
    };
  }

  // What is live at the peak is that of a state; all else are measures.
  view(name) {
    this.measure = kMeasures[name === 'peak' ? 'live' : name];
    const state = name === 'peak' ? kPeak :
        this.state === kPeak ? this.data.reports.length : this.state;
    this.choose(state, name === 'peak' ? null : this.base);
  }

  choose(state, base) {
    // At the peak only bytes are known.
    if (state === kPeak && this.measure !== kMeasures.live) this.measure = kMeasures.live;
    Object.assign(this, {state, base});
    at('report').value = state;
    at('base').value = base ?? '';
    const name = Object.keys(kMeasures).find((key) => kMeasures[key] === this.measure);
    at('measure').value = state === kPeak ? 'peak' : name;
    for (const id of ['report', 'base']) at(id).disabled = !isOfState(this.measure);
    this.timeline.draw(state, base);
    this.listReports();
    this.show();
  }

  // What follows from what is chosen.
  show() {
    const chosen = at('thread').value;
    this.rows = this.data.rows(this.measure, this.state, this.base).filter(
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
    at('reports').replaceChildren(
        make('thead', {}, make('tr', {}, ...head.map((text) => make('th', {scope: 'col'}, text)))),
        make('tbody', {}, ...this.data.reports.map(line)));
  }

  drawGraph() {
    const {measure, difference} = this.drawing;
    this.picture.draw(this.rows, this.drawing);
    const {grew, shrank} = moved(this.rows);
    this.picture.summary.textContent = difference ?
        `${grew < shrank ? '' : '+'}${measure.text(grew - shrank)}: ` +
            `grew ${grouped(grew)} (red), shrank ${grouped(shrank)} (blue)` :
        measure.text(grew) +
            (measure.of ? ` in ${countText(this.data.reports.length, 'report')}` : '');
  }

  // Of the stacks that the search finds. Nothing where blocks are not known, or only how they
  // changed.
  drawSizes() {
    const {measure, difference, beside} = this.drawing;
    const exactly = (stack) => !isOfState(measure) ? null : Data.sizesAt(stack, this.state);
    const known = !difference && beside;
    const classes = known ? sizeHistogram(this.table.rows, exactly) : new Map();
    at('sizes-part').hidden = classes.size === 0;
    if (classes.size === 0) return;
    const average = this.table.rows.some(({stack}) => exactly(stack) === null);
    at('sizes-key').textContent = !average ? 'Sizes are exact, from the event log.' :
        this.data.exactSizes && isOfState(measure) ?
            'Sizes are exact, from the event log; stacks that it does not have count at their ' +
                'average size.' :
            'The blocks of a stack count at their average size: reports do not hold the sizes. ' +
                'memlog export --sizes takes them from an event log; memlog show --sizes reads ' +
                'them from a running process.';
    drawSizes(at('sizes'), classes, isOfState(measure) ? 'block' : 'allocation');
  }

  search() {
    const expression = readExpression(at('search').value);
    at('search').setAttribute('aria-invalid', expression === undefined);
    this.picture.search(expression ?? null);
    this.table.show(this.rows, this.drawing, expression ?? null);
    this.drawSizes();
    at('matched').textContent = this.matchText(expression);
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

new Page(new Data(at('data').textContent));
