'use strict';
// What processes and functions hold over time: since this page was opened, a look a second; of the
// process that is shown also before, as memlog run recorded it.

const kMostLooks = 600;  // more of them are thinned out
const kCourseHeight = 150;
const kBelowCourse = 30;
const courses = new Map();  // looks by key of the row, the oldest first
// Of the process that is shown: its start, milliseconds since 1970, and what was recorded.
const recorded = {pid: '', started: 0, samples: []};

// `rows`: what there is now; `keyOf`: of a row, beginning with `scope` as all of its kind do.
function noteCourses(rows, keyOf, scope, time) {
  const there = new Set(rows.map(keyOf));
  for (const row of rows) {
    const key = keyOf(row);
    const course = courses.get(key) ?? [];
    const last = course.at(-1);
    // A pid can be another process's now.
    if (last && (last.name !== row.name || last.time > time)) course.length = 0;
    course.push({name: row.name, time, live: row.bytes, resident: row.resident_bytes});
    courses.set(key, course.length > kMostLooks ? course.filter((_, i) => i % 2 === 0) : course);
  }
  for (const key of courses.keys()) {
    if (key.startsWith(scope) && !there.has(key)) courses.delete(key);
  }
}

// What memlog run recorded before; null: no answer.
async function readRecorded(pid) {
  const answer = await fetch(`api/processes/${pid}/timeline`).catch(() => null);
  const body = answer?.ok ? await answer.json().catch(() => null) : null;
  if (!body) return null;
  const samples = body.samples.map((one) =>
    ({seconds: one.ms / 1000, live: one.live_bytes, resident: one.resident_bytes}));
  return {pid, started: Date.parse(body.started), samples};
}

const courseText = (course, of) => `${sizeText(course[0][of])} to ${sizeText(course.at(-1)[of])}`;

// A line of numbers for a cell of a table, from 0 upward.
function smallLine(values, label) {
  const most = Math.max(...values, 1);
  const step = 80 / Math.max(1, values.length - 1);
  const points = values.map((value, i) =>
    `${(step * i).toFixed(1)},${(19 - 18 * value / most).toFixed(1)}`);
  return makeSvg('svg', {viewBox: '0 0 80 20', 'class': 'history', role: 'img',
                         'aria-label': label}, makeSvg('polyline', {points: points.join(' ')}));
}

// Live bytes of a row.
function smallCourse(key) {
  const course = courses.get(key);
  return smallLine(course.map((look) => look.live), `live ${courseText(course, 'live')}`);
}

class CoursePlot extends Plot {
  constructor(svg, told) {
    super(svg, kCourseHeight);
    svg.onmousemove = (event) => this.pointAt(this.secondsAt(event));
    svg.onmouseleave = () => this.pointAt(null);
    this.told = told;
    this.pointed = null;
  }

  pointAt(seconds) {
    this.pointed = seconds;
    if (this.points) this.draw(this.before, this.since, this.peak);
  }

  // `before`: what was recorded; `since`: looks of this page; `peak`: bytes.
  draw(before, since, peak) {
    Object.assign(this, {before, since, peak, points: [...before, ...since]});
    this.scale(this.points[0].seconds, this.points.at(-1).seconds,
        Math.max(peak, ...this.points.flatMap(({live, resident}) => [live, resident])));
    const parts = this.gap() ? [before, since] : [this.points];
    this.svg.replaceChildren(...this.sizes(), ...this.times(kAbove + kCourseHeight + 20),
        makeSvg('path', {'class': 'peak-line', d: `M${kLeft} ${this.y(peak)}h${this.width()}`}),
        ...parts.flatMap((part) => this.pair(part.map(({seconds, live}) => [seconds, live]),
            part.map(({seconds, resident}) => [seconds, resident]))),
        ...before.length === 0 ? [] : [this.upright('opened', since[0].seconds)],
        ...this.pointed === null ? [] : [this.upright('chosen-line', this.nearest().seconds)]);
    this.svg.setAttribute('height', kAbove + kCourseHeight + kBelowCourse);
    this.told.textContent = this.pointed === null ? this.gapText() : this.pointText();
  }

  // Whether looks are missing between what was recorded and the first of this page.
  gap() {
    const {before, since} = this;
    return before.length !== 0 && since[0].seconds - before.at(-1).seconds > 2;
  }

  gapText() {
    const {before, since} = this;
    const after = (seconds) => `${heldText(1000 * seconds)} after the start`;
    if (before.length === 0) {
      return 'Seen since this page was opened. memlog run records a process from its start.';
    }
    return `Recorded from the start, and seen since this page was opened, ` +
        `${after(since[0].seconds)}.` + (this.gap() ? ` Nothing is known from ` +
            `${after(before.at(-1).seconds)}: ${kDoubled}, and when the process ends.` : '');
  }

  nearest() {
    return this.points.reduce((best, one) =>
      Math.abs(one.seconds - this.pointed) < Math.abs(best.seconds - this.pointed) ? one : best);
  }

  pointText() {
    const {seconds, live, resident} = this.nearest();
    const time = clockText(recorded.started + 1000 * seconds);
    return `${heldText(1000 * seconds)} after the start, ${time}: live ${sizeText(live)}, ` +
        `resident ${sizeText(resident)}`;
  }
}

const coursePlot = new CoursePlot(at('course-lines'), at('course-moment'));

// Of the process that is shown, once it is known when it was started.
function drawCourse(process) {
  at('course').hidden = !process || recorded.pid !== String(process.pid);
  if (at('course').hidden) return;
  const since = courses.get(recorded.pid).map(({time, live, resident}) =>
    ({seconds: (time - recorded.started) / 1000, live, resident}));
  const before = recorded.samples.filter(({seconds}) => seconds < since[0].seconds);
  coursePlot.draw(before, since, process.peak_bytes);
  const all = coursePlot.points;
  at('course-live').textContent = `live ${courseText(all, 'live')}`;
  at('course-resident').textContent = `resident ${courseText(all, 'resident')}`;
  at('course-peak').textContent = `peak ${sizeText(process.peak_bytes)}`;
}
