'use strict';
// What the process that is shown holds at a moment, stack by stack: the picture of its functions,
// and the stacks of a function that is opened. The data are those of the page that memlog export
// draws.

const kDataBegins = '<script type="application/json" id="data">';
const kFreshFor = 5000;  // milliseconds that a moment serves a row that is opened
// Sizes as in the other tables of this page.
for (const measure of Object.values(kMeasures)) {
  if (measure.text === bytesText) Object.assign(measure, {text: sizeText, cell: sizeText});
  if (measure.besideText === bytesText) measure.besideText = sizeText;
}
const moment = {pid: '', data: null, time: 0, asked: null};
const picture = new FunctionPicture(at('picture'), (all) => {
  moment.data.show(all);
  showMoment();
});

async function askMoment(pid) {
  const answer = await fetch(`api/processes/${pid}/export/html`).catch(() => null);
  const page = answer?.ok ? await answer.text().catch(() => '') : '';
  const begin = page.indexOf(kDataBegins) + kDataBegins.length;
  return page === '' ? null : new Data(page.slice(begin, page.indexOf('</script>', begin)));
}

// Asks anew, unless a question is under way.
async function takeMoment(pid) {
  at('at-moment').hidden = false;
  if (moment.pid !== pid) Object.assign(moment, {pid, data: null, time: 0, asked: null});
  if (!moment.asked) {
    at('moment-time').textContent = 'asking';
    moment.asked = askMoment(pid);
  }
  const {asked} = moment;
  const data = await asked;
  // Another process has been opened, or somebody else waited for this answer, too.
  if (moment.pid !== pid || moment.asked !== asked) return;
  moment.asked = null;
  if (!data) {
    at('moment-time').textContent = 'the server does not answer';
    return;
  }
  Object.assign(moment, {data, time: Date.now()});
  data.show(at('libraries').checked);
  const chosen = at('measure').value;
  at('measure').replaceChildren(...measureOptions(data));
  if (chosen) at('measure').value = chosen;
  showMoment();
}

// For a row: a moment ago is now.
async function freshMoment(pid) {
  const fresh = moment.pid === pid && Date.now() - moment.time < kFreshFor;
  if (!fresh) await takeMoment(pid);
  return moment.pid === pid ? moment.data : null;
}

// The rows of a measure, as the picture and a table take them.
function rowsOf(data, name) {
  const measure = kMeasures[name === 'peak' ? 'live' : name];
  const state = name === 'peak' ? kPeak : data.reports.length;
  const rows = data.rows(measure, state, null, null);
  const beside = !isOfState(measure) || data.counts(state, null);
  return [rows, {measure, beside, difference: rows.some(({width}) => width < 0)}];
}

function showMoment() {
  const [rows, view] = rowsOf(moment.data, at('measure').value || 'live');
  picture.draw(rows, view);
  picture.summary.textContent = view.measure.text(moved(rows).grew);
  at('moment-time').textContent = `at ${clockText(moment.time)}`;
}

// Whether `row`, of a function, is where the memory of the stack counts.
function isOf(stack, row) {
  const [{name, source}] = stack.folded;
  const file = (place) => place.replace(/:\d+$/, '');
  return name === row.function.replace(/^\((.*)\)$/, '$1') &&
      (!row.source || file(source) === file(row.source));
}

// Fills `place` with the stacks of a function, largest first.
async function fillStacks(place, pid, row) {
  place.textContent = 'asking';
  const data = await freshMoment(pid);
  if (!data) {
    place.textContent = 'the server does not answer';
    return;
  }
  const [rows, view] = rowsOf(data, 'live');
  const [table, count, more] = [make('table', {'class': 'stacks'}), make('p', {'class': 'key'}),
    make('button', {type: 'button'}, 'more')];
  place.replaceChildren(count, table, more);
  const found = rows.filter(({stack}) => isOf(stack, row));
  // Of what runtimes keep, here each stack is of interest.
  for (const one of found) if (one.stack.kept) one.stack = {...one.stack, frames: one.stack.all};
  new StackTable(table, count, more, data).show(found, view, null);
}

// Marks what is searched for.
function searchMoment(words) {
  picture.expression = words ? new RegExp(words.replace(/[^\w\s]/g, '\\$&'), 'i') : null;
  if (moment.data) picture.search(picture.expression);
}

at('measure').onchange = showMoment;
at('again').onclick = () => takeMoment(moment.pid);
