// The series of reports over time: what is live, the peak, the resident set, and what each report
// changed.

const kUpper = 140;   // pixels, as all lengths here: height of the curve
const kGap = 18;
const kLower = 44;    // of the bars

class Timeline extends Plot {
  // `choose` is called with a state, and whether it is the base that is chosen.
  constructor(svg, line, data, choose) {
    super(svg, kUpper);
    Object.assign(this, {moment: line, data, choose});
    this.stops = data.stops();
    this.state = data.reports.length;
    this.base = null;
    const seconds = [
      ...this.stops.map((state) => data.point(state).seconds),
      ...data.samples.map(([time]) => time / 1000),
    ];
    this.scale(Math.min(...seconds), Math.max(...seconds), Math.max(
        ...data.reports.map(({live, peak, rss}) => Math.max(live, peak ?? 0, rss ?? 0)),
        ...data.samples.map(([, live, resident]) => Math.max(live, resident))));
    this.most = Math.max(1, ...data.reports.map((report) => Math.abs(report.delta)));
    svg.onclick = (event) => choose(this.nearest(event), event.shiftKey);
    svg.onmousemove = (event) => this.tell(this.nearest(event));
    svg.onmouseleave = () => this.tell(this.state);
    svg.onkeydown = (event) => this.key(event);
  }

  key(event) {
    const step = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1}[event.key];
    const count = this.data.reports.length;
    // From the peak, the keys lead to the reports before and after it.
    const after = this.stops.indexOf(kPeak) + 1;
    const at = this.state !== kPeak ? this.state : step < 0 ? after : after - 1;
    const to = {Home: 1, End: count}[event.key] ?? at + (step ?? 0);
    if (to === this.state || to < 1 || to > count) return;
    event.preventDefault();
    this.choose(to, false);
  }

  xOf(state) {
    return this.x(this.data.point(state).seconds);
  }

  nearest(event) {
    const at = event.clientX - this.svg.getBoundingClientRect().left;
    let [best] = this.stops;
    for (const state of this.stops) {
      if (Math.abs(this.xOf(state) - at) < Math.abs(this.xOf(best) - at)) best = state;
    }
    return best;
  }

  text(state) {
    if (state === kPeak) {
      const {bytes, seconds, time} = this.data.peak;
      return `the peak: live ${grouped(bytes)} bytes; ${seconds.toFixed(3)} s after the start, ` +
          timeText(time);
    }
    const {live, peak, rss, delta, seconds, taken} = this.data.reports[state - 1];
    return `${this.data.title(state)}: live ${grouped(live)} bytes, ` +
        `peak ${peak === null ? 'not known' : grouped(peak)}, ` +
        (rss === null ? '' : `resident ${grouped(rss)}, `) +
        `${signed(delta)} since the report before; ${seconds.toFixed(3)} s after the start, ` +
        timeText(taken);
  }

  tell(state) {
    this.moment.textContent = this.text(state);
  }

  draw(state, base) {
    Object.assign(this, {state, base});
    const states = this.data.reports.map((_, i) => i + 1);
    this.svg.replaceChildren(
        ...this.axes(), ...this.curves(states), ...states.map((one) => this.bar(one)),
        ...this.marks(), ...states.map((one) => this.dot(one)), ...this.diamond());
    this.svg.setAttribute('aria-valuemin', 1);
    this.svg.setAttribute('aria-valuemax', states.length);
    this.svg.setAttribute('aria-valuenow',
        state === kPeak ? Math.max(1, this.stops.indexOf(kPeak)) : state);
    this.svg.setAttribute('aria-valuetext', this.text(state));
    this.tell(state);
  }

  axes() {
    const middle = this.middle();
    const bottom = middle + kLower / 2;
    return [
      ...this.sizes(), this.level(middle),
      this.label(kLeft - 8, middle - kLower / 2 + 8, `+${sizeText(this.most)}`, 'end'),
      this.label(kLeft - 8, bottom, sizeText(-this.most), 'end'), ...this.times(bottom + 20),
    ];
  }

  middle() {
    return kAbove + kUpper + kGap + kLower / 2;
  }

  curves(states) {
    const {reports, samples} = this.data;
    let peak = '';
    for (const state of states.filter((one) => reports[one - 1].peak !== null)) {
      const [x, y] = [this.xOf(state), this.y(reports[state - 1].peak)];
      peak += peak === '' ? `M${x} ${y}` : `V${y}H${x}`;
    }
    // What memlog run saw between the reports, or the log has, if it is there.
    const seen = samples.length === 0 ?
        reports.map(({seconds, live, rss}) => [seconds, live, rss ?? 0]) :
        samples.map(([time, live, resident]) => [time / 1000, live, resident]);
    const resident = seen.filter(([, , bytes]) => bytes !== 0);
    return [
      ...this.pair(seen, resident.map(([seconds, , bytes]) => [seconds, bytes])),
      makeSvg('path', {'class': 'peak-line', d: peak}),
    ];
  }

  bar(state) {
    const {delta} = this.data.reports[state - 1];
    const height = Math.max(delta === 0 ? 0 : 1, Math.abs(delta) / this.most * kLower / 2);
    const y = delta > 0 ? this.middle() - height : this.middle();
    return makeSvg('rect', {
      'class': delta > 0 ? 'up' : 'down', x: this.xOf(state) - 3, y, width: 6, height,
    });
  }

  dot(state) {
    const {live} = this.data.reports[state - 1];
    return makeSvg('circle', {
      'class': state === this.state ? 'dot chosen' : 'dot', r: state === this.state ? 5 : 3.5,
      cx: this.xOf(state), cy: this.y(live), 'data-state': state,
    });
  }

  // The peak.
  diamond() {
    if (!this.data.peak) return [];
    const [x, y] = [this.xOf(kPeak), this.y(this.data.peak.bytes)];
    return [makeSvg('path', {
      'class': this.state === kPeak ? 'dot chosen' : 'dot', d: `M${x - 5} ${y}l5 -5l5 5l-5 5Z`,
    })];
  }

  marks() {
    const line = (state, name) =>
      this.upright(name, this.data.point(state).seconds, kGap + kLower);
    const lines = [line(this.state, 'chosen-line')];
    if (this.base > 0 || this.base === kPeak) lines.push(line(this.base, 'base-line'));
    return lines;
  }
}
