// The page: what is chosen above, and what follows from it below.

const element = (id) => document.getElementById(id);

class Page {
  constructor(data) {
    this.data = data;
    this.state = data.peak?.first ? kPeak : data.reports.length;
    this.base = null;  // a state, or null: nothing
    this.timeline = new Timeline(element('timeline'), element('moment'), data,
        (state, isBase) => this.choose(isBase ? this.state : state, isBase ? state : this.base));
    this.table = new StackTable(element('stacks'), element('count'), element('more'), data);
    element('libraries').checked = data.allFrames;
    this.describe();
    this.listen();
    this.choose(this.state, this.base);
  }

  describe() {
    const {command, pid, host, remarks, reports} = this.data;
    element('about').textContent = [
      command, `pid ${pid}`, host && `on ${host}`, countText(reports.length, 'report'),
      `the last taken ${timeText(reports.at(-1).taken)}`,
    ].filter((text) => text !== '').join(', ');
    element('resident-key').hidden =
        this.data.samples.length === 0 && this.data.reports.every(({rss}) => rss === null);
    element('remarks').append(...remarks.map((text) => make('li', {}, text)));
    const options = this.data.stops().map(
        (state) => make('option', {value: state}, this.data.title(state)));
    element('report').append(...options);
    element('base').append(make('option', {value: ''}, 'nothing: what is live'));
    if (this.data.before) element('base').append(make('option', {value: 0}, this.data.title(0)));
    element('base').append(...options.map((option) => option.cloneNode(true)));
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
    element('flame').onchange = () => this.graph.turn(false);
    element('icicle').onchange = () => this.graph.turn(true);
    element('libraries').onchange = () => {
      this.data.show(element('libraries').checked);
      this.drawGraph();
      this.search();
    };
    element('reset').onclick = () => this.graph.zoom(this.graph.boxes[0]);
    window.onresize = () => {
      this.timeline.draw(this.state, this.base);
      this.graph.layout();
    };
    document.onkeydown = (event) => {
      if (event.key !== '/' || event.target.matches('input, select')) return;
      event.preventDefault();
      element('search').focus();
    };
  }

  choose(state, base) {
    Object.assign(this, {state, base});
    element('report').value = state;
    element('base').value = base ?? '';
    this.timeline.draw(state, base);
    this.listReports();
    this.rows = this.data.rows(state, base);
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

  // Below 0 there is something even without a base where an estimate is.
  isDifference() {
    return this.base !== null || this.rows.some((row) => row.bytes < 0);
  }

  drawGraph() {
    const view = {
      difference: this.isDifference(), blocks: this.data.counts(this.state, this.base),
    };
    drawBoxes(element('graph'), makeTree(this.rows), view);
    this.graph = new FlameGraph(element('graph'), (text) => {
      element('told').textContent = text.replace('\n', ': ');
    });
    this.graph.turn(element('icicle').checked);
    const {grew, shrank} = moved(this.rows);
    element('summary').textContent = view.difference ?
        `${signed(grew - shrank)} bytes: ` +
            `grew ${grouped(grew)} (red), shrank ${grouped(shrank)} (blue)` :
        `${grouped(grew)} bytes`;
  }

  search() {
    const expression = readExpression(element('search').value);
    element('search').setAttribute('aria-invalid', expression === undefined);
    this.graph.search(expression ?? null);
    this.table.show(this.rows, this.isDifference(), expression ?? null,
        this.data.counts(this.state, this.base));
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
