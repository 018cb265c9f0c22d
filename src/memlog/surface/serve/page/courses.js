'use strict';
// What processes have held since this page was opened: live and resident bytes, a look a second.

const kMostLooks = 300;
const courses = new Map();  // looks of a process, by pid; the oldest first

function noteCourses(answer) {
  const all = answer.processes ?? [answer.process];
  for (const row of all) {
    const course = courses.get(row.pid) ?? [];
    courses.set(row.pid, course);
    const last = course.at(-1);
    // A pid can be another process's now.
    if (last && (last.name !== row.name || last.time > answer.taken_ms)) course.length = 0;
    course.push({name: row.name, time: answer.taken_ms,
                 live: row.bytes, resident: row.resident_bytes});
    if (course.length > kMostLooks) course.shift();
  }
  if (!answer.processes) return;
  const there = new Set(all.map((row) => row.pid));
  for (const pid of courses.keys()) if (!there.has(pid)) courses.delete(pid);
}

const mostOf = (course) => Math.max(...course.map((look) => Math.max(look.live, look.resident)), 1);

// A line through the looks, in a box that begins at 0 bytes.
function courseLine(course, of, most, width, height) {
  const begin = course[0]?.time ?? 0;
  const length = Math.max((course.at(-1)?.time ?? 0) - begin, 1);
  const points = course.map((look) => {
    const x = width * (look.time - begin) / length;
    return `${x.toFixed(1)},${(height - 1 - (height - 2) * look[of] / most).toFixed(1)}`;
  });
  return makeSvg('polyline', {points: points.join(' '), 'class': of});
}

const courseText = (course, of) => `${sizeText(course[0][of])} to ${sizeText(course.at(-1)[of])}`;

function courseLength(course) {
  const seconds = Math.round((course.at(-1).time - course[0].time) / 1000);
  return seconds < 120 ? countText(seconds, 'second')
      : countText(Math.round(seconds / 60), 'minute');
}

// For a cell of a table.
function smallLine(course, of, label) {
  const most = Math.max(...course.map((look) => look[of]), 1);
  return makeSvg('svg', {viewBox: '0 0 80 20', 'class': 'history', role: 'img',
                         'aria-label': label}, courseLine(course, of, most, 80, 20));
}

// Of one of many processes: live bytes alone.
function smallCourse(pid) {
  const course = courses.get(pid);
  return smallLine(course, 'live', `live ${courseText(course, 'live')}`);
}

// Of the process that is shown; `pid` "": none is.
function drawCourse(pid) {
  const course = courses.get(Number(pid));
  at('course').hidden = !course || course.length < 2;
  if (at('course').hidden) return;
  const [width, height, most] = [600, 80, mostOf(course)];
  at('course-lines').replaceChildren(
      courseLine(course, 'resident', most, width, height),
      courseLine(course, 'live', most, width, height));
  at('course-text').textContent = `${courseLength(course)}, 0 to ${sizeText(most)}: `;
  at('course-live').textContent = `live ${courseText(course, 'live')}`;
  at('course-resident').textContent = `resident ${courseText(course, 'resident')}`;
}
