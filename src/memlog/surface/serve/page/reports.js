'use strict';
// The served files and directories, and the stacks of reports and of processes as tables with
// filters. The address after # is a link to what is shown: #reports, #reports/1/leaks,
// #reports/1/stacks?include=cache, #diff?a=reports/1&b=reports/2, #4711/stacks.

const kFilters = ['include', 'exclude', 'group_by', 'limit'];
const kSides = ['a', 'b'];
const kChange = {title: 'change', signed: true, value: (row) => row.bytes};
const kBlocks = {
  title: 'blocks', signed: true, count: true, less: true, value: (row) => row.blocks};

// `path`: below api/; `stacks`: those of the answer; `columns`: sizes, unless `count`; `sides`: it
// compares two.
const kTables = {
  report: {
    title: (where) => `Reports ${where.number}: sum of the changes`,
    path: (where) => `api/reports/${where.number}/stacks`,
    stacks: (answer) => answer.stacks, columns: [kChange, kBlocks,
      {title: 'allocations', count: true, value: (row) => row.allocated_blocks ?? 0, less: true}]},
  leaks: {
    title: (where) => `Reports ${where.number}: what grows`,
    path: (where) => `api/reports/${where.number}/leaks`,
    stacks: (answer) => answer.processes.flatMap((one) => one.stacks ?? []),
    none: (answer) => answer.processes.some((one) => !one.stacks) ?
        'Too few reports of a process to tell what grows.' : 'No stack grows.',
    columns: [
      {title: 'per report', signed: true, value: (row) => row.growth_bytes_per_report ?? 0},
      {title: 'first', value: (row) => row.first_bytes ?? 0, less: true},
      {title: 'last', value: (row) => row.last_bytes ?? 0, less: true},
      {title: 'history', draw: (row) => history(row.states_bytes ?? []), value: () => 0},
      {title: 'course', text: (row) => row.course ?? '', value: () => 0, less: true}]},
  diff: {
    sides: true,
    title: (where) => `${where.query.get('b')} compared with ${where.query.get('a')}`,
    path: () => 'api/diff', stacks: (answer) => answer.stacks,
    columns: [{title: 'A', value: (row) => row.before_bytes ?? 0},
              {title: 'B', value: (row) => row.after_bytes ?? 0}, kChange, kBlocks]},
  process: {
    title: (where) => `Process ${where.number}: stacks`,
    path: (where) => `api/processes/${where.number}/stacks`,
    stacks: (answer) => answer.reports.flatMap((one) => one.stacks),
    columns: [{title: 'live', value: (row) => row.bytes}, {...kBlocks, signed: false}]},
};

// What the address asks for; null: nothing of this file.
function tableOf(hash) {
  const [path, query] = hash.slice(1).split('?');
  const where = {hash, query: new URLSearchParams(query)};
  const found = /^(reports)$|^reports\/(\d+)\/(stacks|leaks)$|^(diff)$|^(\d+)\/stacks$/.exec(path);
  if (!found) return null;
  where.number = found[2] ?? found[5];
  where.table = found[1] ? null : found[4] ? kTables.diff : found[5] ? kTables.process
    : found[3] === 'leaks' ? kTables.leaks : kTables.report;
  return where;
}

// Bytes from report to report, as a line.
function history(values) {
  return smallLine(values, values.map(sizeText).join(', '));
}

// The frames of a stack, opened by a click.
function stackCell(row) {
  const frames = (row.frames ?? []).map((frame) => ({
    name: frame.function ?? frame.offset ?? frame.address, module: frame.module,
    source: frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ''}` : '',
  }));
  const button = make('button', {type: 'button', 'class': 'stack', 'aria-expanded': 'false'},
      ...row.group ? [row.group] : pathOf(frames.slice(0, 3)));
  const cell = make('td', {}, button);
  button.onclick = () => {
    const open = button.getAttribute('aria-expanded') === 'false';
    button.setAttribute('aria-expanded', String(open));
    if (!open) return cell.lastChild.remove();
    const places = frames.map(({name, source, module}) => make('li', {}, name,
        make('small', {}, [source, module].filter(Boolean).join('  '))));
    cell.append(make('div', {}, make('ol', {}, ...places),
        make('small', {}, row.stack ? `stack=${row.stack}` : row.group_source ?? '')));
  };
  return cell;
}

function tableCell(row, column) {
  if (column.draw) return make('td', {}, column.draw(row));
  if (column.text) return make('td', {'class': 'less'}, column.text(row));
  const value = column.value(row);
  const sign = column.signed && value > 0 ? '+' : '';
  const color = column.signed && value ? (value > 0 ? ' up' : ' down') : '';
  return make('td', {'class': (column.less ? 'less' : '') + color, title: grouped(value)},
      sign + (column.count ? grouped(value) : sizeText(value)));
}

function drawTable(where, answer) {
  const {columns} = where.table;
  const stacks = where.table.stacks(answer);
  at('titles').replaceChildren(make('th', {scope: 'col'}, 'stack'),
      ...columns.map((column) => make('th', {scope: 'col', 'class': column.less ? 'less' : ''},
          column.title)));
  at('rows').replaceChildren(...stacks.map((row) => make('tr', {}, stackCell(row),
      ...columns.map((column) => tableCell(row, column)))));
  at('empty').hidden = stacks.length !== 0;
  at('empty').textContent = where.table.none ? where.table.none(answer) : 'No stack matches.';
  const left = answer.left_out ?? answer.reports?.[0]?.left_out;
  at('told').textContent = countText(stacks.length, 'row') + (left ?
      `, left out: ${countText(left.stacks ?? left.stack_count ?? 0, 'stack')}` : '');
}

function drawReports(answer) {
  at('titles').replaceChildren(make('th', {scope: 'col'}, 'reports'));
  at('rows').replaceChildren(...answer.reports.map(({number, path}) => {
    const links = [['sum', `#reports/${number}/stacks`], ['what grows', `#reports/${number}/leaks`],
                   ['report page', `api/reports/${number}/export/html`]];
    const others = answer.reports.filter((one) => one.number !== number);
    for (const one of others.slice(0, 20)) {
      links.push([`compare with ${one.number}`,
                  `#diff?a=reports/${one.number}&b=reports/${number}`]);
    }
    return make('tr', {}, make('td', {}, `${number}: ${path}`, make('p', {'class': 'links'},
        ...links.map(([text, href]) => make('a', {href}, text)))));
  }));
  at('empty').hidden = answer.reports.length !== 0;
  at('empty').textContent = 'No reports are served: name files or directories to memlog serve.';
  at('told').textContent = 'The files and directories that memlog serve was given';
}

// Shows it, unless something else has been opened before the answer came.
async function openTable(where) {
  at('title').textContent = where.table ? where.table.title(where) : 'Reports';
  at('filter').hidden = !where.table;
  for (const name of [...kFilters, ...kSides]) at(`f-${name}`).value = where.query.get(name) ?? '';
  for (const name of kSides) at(`f-${name}`).parentElement.hidden = !where.table?.sides;
  const query = new URLSearchParams([...where.query].filter(([, value]) => value));
  if (where.table && !query.has('limit')) query.set('limit', '200');
  const answer = await fetch(where.table ? `${where.table.path(where)}?${query}` : 'api/reports')
      .catch(() => null);
  const body = answer && await answer.json().catch(() => null);
  if (location.hash !== where.hash) return;
  at('ask').hidden = !answer || answer.status !== 401;
  if (!answer?.ok || !body) {
    at('told').textContent = body?.error ?? 'the server does not answer';
  } else if (where.table) {
    drawTable(where, body);
  } else {
    drawReports(body);
  }
}

at('filter').onsubmit = (event) => {
  event.preventDefault();
  const [path] = location.hash.split('?');
  const query = new URLSearchParams();
  for (const name of [...kFilters, ...kSides]) {
    if (at(`f-${name}`).value) query.set(name, at(`f-${name}`).value);
  }
  location.hash = `${path}?${query}`;
};
