// The stacks as a table: sorted by a column, those that match, a page at a time.

const kPage = 100;  // rows

// "leaky leaky.c:3 < serve :20 < main main.c:9": a file again is not named again.
function pathOf(frames) {
  let last = '';
  return frames.flatMap(({name, source}, i) => {
    const [file, line] = source.slice(source.lastIndexOf('/') + 1).split(/(?=:\d+$)/);
    const place = line && file === last ? line : source && file + (line ?? '');
    last = file;
    return [`${i === 0 ? '' : ' < '}${name}`,
      ...(place ? [make('span', {'class': 'place'}, ` ${place}`)] : [])];
  });
}

class StackTable {
  constructor(table, count, more, data) {
    Object.assign(this, {table, count, more, data});
    this.rows = [];
    this.order = {key: 'width', down: true};
    this.limit = kPage;
    more.onclick = () => {
      this.limit += kPage;
      this.draw();
    };
  }

  columns() {
    const {measure, difference} = this.view;
    const columns = [
      {key: 'width', title: difference ? 'change' : measure.column, sign: difference,
       text: measure.cell && ((row) => measure.cell(row.width))},
      {key: 'share', title: 'share', text: (row) => percentText(Math.abs(row.width), this.whole)},
    ];
    if (this.view.beside) {
      columns.push({key: 'beside', title: measure.beside, sign: difference, optional: true});
    }
    if (measure.of) {
      columns.push({key: 'lifetime', title: 'mean lifetime', optional: true,
                    text: (row) => row.stack.turnover.freed === 0 ? '' : heldText(row.lifetime)});
    }
    if (difference) {
      columns.push({key: 'before', title: 'before', optional: true},
          {key: 'after', title: 'after', optional: true});
    }
    return [...columns, {key: 'stack', title: 'stack: function and line, callers'}];
  }

  // `view`: as for numbers().
  show(rows, view, expression) {
    const {grew, shrank} = moved(rows);
    this.whole = grew + shrank;
    this.view = view;
    this.expression = expression;
    this.rows = expression === null ? rows : rows.filter((row) => this.matches(row));
    this.limit = kPage;
    this.draw();
  }

  matches(row) {
    return row.stack.frames.some((frame) => this.expression.test(frame.name));
  }

  sort(key) {
    const down = this.order.key === key ? !this.order.down : key !== 'stack';
    this.order = {key, down};
    this.draw();
    this.table.querySelector(`[data-key=${key}] button`).focus();
  }

  sorted() {
    const {key, down} = this.order;
    const value = {stack: (row) => row.stack.text, share: (row) => Math.abs(row.width)}[key] ??
        ((row) => row[key]);
    const sign = down ? -1 : 1;
    return this.rows.toSorted((a, b) => {
      if (value(a) === value(b)) return a.stack.text < b.stack.text ? -1 : 1;
      return value(a) < value(b) ? -sign : sign;
    });
  }

  draw() {
    const columns = this.columns();
    if (!columns.some(({key}) => key === this.order.key)) this.order = {key: 'width', down: true};
    const shown = this.sorted().slice(0, this.limit);
    this.table.replaceChildren(
        make('thead', {}, make('tr', {}, ...columns.map((column) => this.head(column)))),
        make('tbody', {}, ...shown.map((row) => this.line(row, columns))));
    this.count.textContent = countText(this.rows.length, 'stack') +
        (shown.length < this.rows.length ? `, the first ${grouped(shown.length)} shown` : '');
    this.more.hidden = shown.length === this.rows.length;
  }

  head({key, title, optional}) {
    const button = make('button', {type: 'button'}, title);
    button.onclick = () => this.sort(key);
    const cell = make('th', {
      scope: 'col', 'data-key': key, 'class': optional ? 'optional' : '',
    }, button);
    if (this.order.key === key) {
      cell.setAttribute('aria-sort', this.order.down ? 'descending' : 'ascending');
    }
    return cell;
  }

  line(row, columns) {
    return make('tr', {}, ...columns.map((column) => this.cell(row, column)));
  }

  cell(row, {key, text, sign, optional}) {
    if (key === 'stack') return this.stackCell(row);
    const kinds = [optional ? 'optional' : ''];
    if (sign && row[key] !== 0) kinds.push(row[key] > 0 ? 'positive' : 'negative');
    const value = text ? text(row) : sign ? signed(row[key]) : grouped(row[key]);
    return make('td', {'class': kinds.join(' ')}, value);
  }

  stackCell(row) {
    const button = make('button', {
      type: 'button', 'class': 'stack', 'aria-expanded': 'false',
    }, ...pathOf(row.stack.frames));
    const cell = make('td', {}, button);
    button.onclick = () => {
      const open = button.getAttribute('aria-expanded') === 'false';
      button.setAttribute('aria-expanded', open);
      if (open) cell.append(this.details(row));
      else cell.lastChild.remove();
    };
    return cell;
  }

  details({stack, bytes, blocks}) {
    const place = ({source, module}) => [source && ` ${source}`, module && ` (${module})`].join('');
    const frames = (stack.kept ? stack.all : stack.frames).map((frame) => make('li', {},
        this.expression?.test(frame.name) ? make('mark', {}, frame.name) : frame.name,
        make('span', {'class': 'place'}, place(frame)), ...this.source(frame)));
    const facts = [];
    if (blocks > 0 && bytes >= 0) {
      facts.push(`a block has ${bytesText(Math.round(bytes / blocks))} on average`);
    }
    if (stack.id !== '') facts.push(`stack=${stack.id}`);
    return make('div', {}, sparkLine(this.data, stack), make('ol', {'class': 'frames'}, ...frames),
        make('span', {'class': 'place'}, facts.join('; ')));
  }

  // The lines around the frame's, where memlog found the file.
  source({lines}) {
    if (!lines) return [];
    const [first, chosen, texts] = lines;
    return [make('pre', {'class': 'source'}, ...texts.map((text, i) => make('span',
        first + i === chosen ? {'class': 'here'} : {},
        `${String(first + i).padStart(5)}  ${text}\n`)))];
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
