// A picture over time: where a moment and a number of bytes are in it, and its axes.

const kLeft = 74;    // pixels, as all lengths here: room for the numbers
const kRight = 14;
const kAbove = 12;
const kTick = 90;    // least distance of two times
const kSizeTicks = 5;
// Units in seconds, and the least span that is told in them.
const kTimeUnits = [
  ['d', 86400, 259200], ['h', 3600, 10800], ['min', 60, 300], ['s', 1, 0.02], ['ms', 0.001, 0],
];
const kDoubled = 'memlog run writes the timeline of a running process when its time has doubled';

// The least of 1, 2 and 5 times a power of ten that is not below `least`.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least);
}

// Round times between `first` and `first + span` seconds, at most `count`: seconds and texts.
function timeTicks(first, span, count) {
  const [word, unit] = kTimeUnits.find(([, , shortest]) => span >= shortest);
  const step = roundStep(span / unit / Math.max(1, count));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let i = Math.ceil(first / unit / step - 1e-9); i * step <= (first + span) / unit + 1e-9;
    ++i) {
    ticks.push({seconds: i * step * unit, text: `${(i * step).toFixed(digits)} ${word}`});
  }
  return ticks;
}

// Round numbers of bytes from 0 to `top`.
function sizeTicks(top) {
  const unit = 1024 ** Math.floor(Math.log2(Math.max(1, top)) / 10);
  const step = Math.max(1, roundStep(top / unit / kSizeTicks) * unit);
  const ticks = [];
  for (let size = 0; size <= top; size += step) ticks.push(size);
  return ticks;
}

class Plot {
  // `height`: of the part that bytes are drawn in.
  constructor(svg, height) {
    Object.assign(this, {svg, height});
  }

  // From `first` to `last`, seconds, and from 0 to `top` bytes.
  scale(first, last, top) {
    Object.assign(this, {first, span: last - first, top: Math.max(1, top)});
  }

  width() {
    return Math.max(1, this.svg.clientWidth - kLeft - kRight);
  }

  secondsAt(event) {
    const at = event.clientX - this.svg.getBoundingClientRect().left - kLeft;
    return this.first + Math.min(1, Math.max(0, at / this.width())) * this.span;
  }

  x(seconds) {
    return kLeft + this.width() * (this.span === 0 ? 0.5 : (seconds - this.first) / this.span);
  }

  y(bytes) {
    return kAbove + this.height * (1 - bytes / this.top);
  }

  // Through [seconds, bytes], as the commands of a path; '' for none.
  line(points) {
    const places = points.map(([seconds, bytes]) => `${this.x(seconds)} ${this.y(bytes)}`);
    return places.length === 0 ? '' : `M${places.join('L')}`;
  }

  // What holds the curve of live bytes, and resident bytes beside it.
  pair(live, resident) {
    const area = live.length === 0 ? '' :
        `${this.line(live)}V${this.y(0)}H${this.x(live[0][0])}Z`;
    return [['area', area], ['resident-line', this.line(resident)], ['line', this.line(live)]].map(
        ([name, d]) => makeSvg('path', {'class': name, d}));
  }

  // From top to bottom.
  upright(name, seconds, below = 0) {
    return makeSvg('path', {
      'class': name, d: `M${this.x(seconds)} ${kAbove}V${kAbove + this.height + below}`,
    });
  }

  level(y) {
    return makeSvg('path', {'class': 'grid', d: `M${kLeft} ${y}h${this.width()}`});
  }

  label(x, y, text, anchor) {
    return makeSvg('text', {x, y, 'text-anchor': anchor}, text);
  }

  sizes() {
    return sizeTicks(this.top).flatMap((size) => [
      this.level(this.y(size)),
      this.label(kLeft - 8, this.y(size) + 4, sizeText(size).replace('.0 ', ' '), 'end'),
    ]);
  }

  times(y) {
    if (this.span === 0) {
      return [this.label(this.x(this.first), y, `${this.first.toFixed(3)} s`, 'middle')];
    }
    const right = this.svg.clientWidth;
    return timeTicks(this.first, this.span, this.width() / kTick).flatMap(({seconds, text}) => {
      const x = this.x(seconds);
      return [
        makeSvg('path', {'class': 'grid', d: `M${x} ${y - 14}v4`}),
        this.label(Math.min(x, right - 3.5 * text.length), y, text, 'middle'),
      ];
    });
  }
}
