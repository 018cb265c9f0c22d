// The series of reports over time: what is live, the peak, the resident set, and what each report
// changed.

const kLeft = 74;     // pixels, as all lengths here: room for the numbers
const kRight = 14;
const kAbove = 12;
const kUpper = 140;   // height of the curve
const kGap = 18;
const kLower = 44;    // of the bars
const kTicks = [0, 0.5, 1];
const kTick = 90;     // least distance of two times
const kLeastDrag = 4;
// Units in seconds, and the least span that is told in them.
const kTimeUnits = [
  ['d', 86400, 259200], ['h', 3600, 10800], ['min', 60, 300], ['s', 1, 0.02], ['ms', 0.001, 0],
];

// Round times between `first` and `first + span` seconds, at most `count`: seconds and texts.
function timeTicks(first, span, count) {
  const [word, unit] = kTimeUnits.find(([, , shortest]) => span >= shortest);
  const least = span / unit / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let i = Math.ceil(first / unit / step - 1e-9); i * step <= (first + span) / unit + 1e-9;
    ++i) {
    ticks.push({seconds: i * step * unit, text: `${(i * step).toFixed(digits)} ${word}`});
  }
  return ticks;
}

class Timeline {
  // `choose` is called with a state, and whether it is the base that is chosen. `brush`, if any,
  // with two times that the reader has dragged over.
  constructor(svg, line, data, choose, brush) {
    Object.assign(this, {svg, line, data, choose, brush});
    this.stops = data.stops();
    this.state = data.reports.length;
    this.base = null;
    const seconds = [
      ...this.stops.map((state) => data.point(state).seconds),
      ...data.samples.map(([time]) => time / 1000),
    ];
    this.first = Math.min(...seconds);
    this.span = Math.max(...seconds) - this.first;
    this.top = Math.max(
        1, ...data.reports.map(({live, peak, rss}) => Math.max(live, peak ?? 0, rss ?? 0)),
        ...data.samples.map(([, live, resident]) => Math.max(live, resident)));
    this.most = Math.max(1, ...data.reports.map((report) => Math.abs(report.delta)));
    svg.onclick = (event) => {
      if (!this.dragged) choose(this.nearest(event), event.shiftKey);
    };
    svg.onmousemove = (event) => this.tell(this.nearest(event));
    if (brush) this.listenForDrags();
    svg.onmouseleave = () => this.tell(this.state);
    svg.onkeydown = (event) => this.key(event);
  }

  // A drag of a few pixels is a click.
  listenForDrags() {
    const {svg} = this;
    const span = (event) => [this.dragFrom, this.secondsAt(event)].toSorted((a, b) => a - b);
    svg.style.touchAction = 'pan-y';
    svg.onpointerdown = (event) => {
      Object.assign(this, {dragFrom: this.secondsAt(event), dragX: event.clientX, dragged: false});
    };
    svg.onpointermove = (event) => {
      if (this.dragFrom === undefined) return;
      if (!this.dragged && Math.abs(event.clientX - this.dragX) < kLeastDrag) return;
      if (!this.dragged) svg.setPointerCapture(event.pointerId);
      this.dragged = true;
      this.draw(this.state, this.base, span(event));
    };
    svg.onpointerup = (event) => {
      if (this.dragged) this.brush(...span(event));
      this.dragFrom = undefined;
    };
    svg.onpointercancel = () => {
      this.dragFrom = undefined;
    };
  }

  secondsAt(event) {
    const width = this.svg.clientWidth - kLeft - kRight;
    const at = event.clientX - this.svg.getBoundingClientRect().left - kLeft;
    return this.first + Math.min(1, Math.max(0, at / width)) * this.span;
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

  x(state) {
    return this.xOf(this.data.point(state).seconds);
  }

  xOf(seconds) {
    const width = this.svg.clientWidth - kLeft - kRight;
    return kLeft + width * (this.span === 0 ? 0.5 : (seconds - this.first) / this.span);
  }

  y(bytes) {
    return kAbove + kUpper * (1 - bytes / this.top);
  }

  nearest(event) {
    const at = event.clientX - this.svg.getBoundingClientRect().left;
    let [best] = this.stops;
    for (const state of this.stops) {
      if (Math.abs(this.x(state) - at) < Math.abs(this.x(best) - at)) best = state;
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
    this.line.textContent = this.text(state);
  }

  // `brushed`: two times, or null.
  draw(state, base, brushed) {
    Object.assign(this, {state, base, brushed});
    const states = this.data.reports.map((_, i) => i + 1);
    this.svg.replaceChildren(
        ...this.axes(), ...this.brushArea(), ...this.curves(states),
        ...states.map((one) => this.bar(one)),
        ...this.marks(), ...states.map((one) => this.dot(one)), ...this.diamond());
    this.svg.setAttribute('aria-valuemin', 1);
    this.svg.setAttribute('aria-valuemax', states.length);
    this.svg.setAttribute('aria-valuenow',
        state === kPeak ? Math.max(1, this.stops.indexOf(kPeak)) : state);
    this.svg.setAttribute('aria-valuetext', this.text(state));
    this.tell(state);
  }

  brushArea() {
    if (!this.brushed) return [];
    const [left, right] = this.brushed.map((seconds) => this.xOf(seconds));
    return [makeSvg('rect', {
      'class': 'brush', x: left, y: kAbove, width: Math.max(1, right - left), height: kUpper,
    })];
  }

  label(x, y, text, anchor) {
    return makeSvg('text', {x, y, 'text-anchor': anchor}, text);
  }

  axes() {
    const right = this.svg.clientWidth - kRight;
    const parts = [];
    for (const share of kTicks) {
      const y = this.y(this.top * share);
      parts.push(makeSvg('path', {'class': 'grid', d: `M${kLeft} ${y}H${right}`}),
          this.label(kLeft - 8, y + 4, sizeText(Math.round(this.top * share)), 'end'));
    }
    const middle = this.middle();
    const bottom = middle + kLower / 2;
    parts.push(makeSvg('path', {'class': 'grid', d: `M${kLeft} ${middle}H${right}`}),
        this.label(kLeft - 8, middle - kLower / 2 + 8, `+${sizeText(this.most)}`, 'end'),
        this.label(kLeft - 8, bottom, sizeText(-this.most), 'end'));
    return [...parts, ...this.times(bottom + 20)];
  }

  times(y) {
    if (this.span === 0) {
      return [this.label(this.xOf(this.first), y, `${this.first.toFixed(3)} s`, 'middle')];
    }
    const width = this.svg.clientWidth - kLeft - kRight;
    const right = this.svg.clientWidth;
    return timeTicks(this.first, this.span, width / kTick).flatMap(({seconds, text}) => {
      const x = this.xOf(seconds);
      return [
        makeSvg('path', {'class': 'grid', d: `M${x} ${y - 14}v4`}),
        this.label(Math.min(x, right - 3.5 * text.length), y, text, 'middle'),
      ];
    });
  }

  middle() {
    return kAbove + kUpper + kGap + kLower / 2;
  }

  curves(states) {
    const value = (state, key) => this.y(this.data.reports[state - 1][key]);
    const live = states.map((state) => `${this.x(state)} ${value(state, 'live')}`).join('L');
    const floor = this.y(0);
    let peak = '';
    for (const state of states.filter((one) => this.data.reports[one - 1].peak !== null)) {
      const [x, y] = [this.x(state), value(state, 'peak')];
      peak += peak === '' ? `M${x} ${y}` : `V${y}H${x}`;
    }
    if (this.data.samples.length !== 0) {
      return [...this.sampled(floor), makeSvg('path', {'class': 'peak-line', d: peak})];
    }
    const resident = states.filter((one) => this.data.reports[one - 1].rss !== null)
        .map((state) => `${this.x(state)} ${value(state, 'rss')}`).join('L');
    return [
      makeSvg('path', {'class': 'area', d: `M${this.x(1)} ${floor}L${live}V${floor}Z`}),
      makeSvg('path', {'class': 'peak-line', d: peak}),
      makeSvg('path', {'class': 'resident-line', d: resident === '' ? '' : `M${resident}`}),
      makeSvg('path', {'class': 'line', d: `M${live}`}),
    ];
  }

  // What memlog run saw between the reports: live, and resident beside it.
  sampled(floor) {
    const line = (what, samples = this.data.samples) => samples.map((sample) =>
        `${this.xOf(sample[0] / 1000)} ${this.y(sample[what])}`).join('L');
    const known = this.data.samples.filter(([, , resident]) => resident !== 0);
    const [first, last] = [this.data.samples[0], this.data.samples.at(-1)];
    const [left, right] = [this.xOf(first[0] / 1000), this.xOf(last[0] / 1000)];
    return [
      makeSvg('path', {'class': 'area', d: `M${left} ${floor}L${line(1)}L${right} ${floor}Z`}),
      makeSvg('path', {'class': 'line', d: `M${line(1)}`}),
      makeSvg('path', {'class': 'resident-line', d: known.length ? `M${line(2, known)}` : ''}),
    ];
  }

  bar(state) {
    const {delta} = this.data.reports[state - 1];
    const height = Math.max(delta === 0 ? 0 : 1, Math.abs(delta) / this.most * kLower / 2);
    const y = delta > 0 ? this.middle() - height : this.middle();
    return makeSvg('rect', {
      'class': delta > 0 ? 'up' : 'down', x: this.x(state) - 3, y, width: 6, height,
    });
  }

  dot(state) {
    const {live} = this.data.reports[state - 1];
    return makeSvg('circle', {
      'class': state === this.state ? 'dot chosen' : 'dot', r: state === this.state ? 5 : 3.5,
      cx: this.x(state), cy: this.y(live), 'data-state': state,
    });
  }

  // The peak.
  diamond() {
    if (!this.data.peak) return [];
    const [x, y] = [this.x(kPeak), this.y(this.data.peak.bytes)];
    return [makeSvg('path', {
      'class': this.state === kPeak ? 'dot chosen' : 'dot', d: `M${x - 5} ${y}l5 -5l5 5l-5 5Z`,
    })];
  }

  marks() {
    const line = (state, name) => makeSvg('path', {
      'class': name, d: `M${this.x(state)} ${kAbove}V${this.middle() + kLower / 2}`,
    });
    const lines = [line(this.state, 'chosen-line')];
    if (this.base > 0 || this.base === kPeak) lines.push(line(this.base, 'base-line'));
    return lines;
  }
}

// One stack over all reports, as a small curve.
function sparkLine(data, stack) {
  const values = data.reports.map((_, i) => Data.at(stack, i + 1).bytes);
  const top = Math.max(1, ...values);
  const step = values.length === 1 ? 0 : 100 / (values.length - 1);
  const points = values.map((value, i) => `${i * step} ${30 * (1 - value / top)}`).join('L');
  return makeSvg('svg', {'class': 'spark', viewBox: '-2 -3 104 36', preserveAspectRatio: 'none',
                         role: 'img', 'aria-label': `over the reports: ${values.join(', ')}`},
      makeSvg('path', {'class': 'line', 'vector-effect': 'non-scaling-stroke', d: `M${points}`}));
}
