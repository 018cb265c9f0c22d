// What the reports say: src/memlog/export/report_page.cc writes it.
//
// State 0 is before the first report, state n when the nth was taken. A stack has its values where
// they changed, [state, bytes, blocks, state, bytes, blocks, ...]; before that it held nothing.

class Data {
  constructor(text) {
    Object.assign(this, JSON.parse(text));
    this.stacks = this.stacks.map(([id, frames, values]) => ({
      id, values,
      frames: frames.map((frame) => this.frame(frame)),  // innermost first
    }));
    for (const report of this.reports) {
      report.seconds = report.uptime === '' ?
          (Date.parse(report.taken) - Date.parse(this.started)) / 1000 : Number(report.uptime);
    }
    for (const stack of this.stacks) {
      stack.text = stack.frames.map((frame) => frame.name).join(' < ');
    }
  }

  frame(index) {
    const [name, source, module] = this.frames[index];
    return {name: this.names[name], source: this.sources[source], module: this.modules[module]};
  }

  // What the stack holds at `state` (null: nothing).
  static at(stack, state) {
    let bytes = 0;
    let blocks = 0;
    if (state === null) return {bytes, blocks};
    for (let i = 0; i < stack.values.length && stack.values[i] <= state; i += 3) {
      bytes = stack.values[i + 1];
      blocks = stack.values[i + 2];
    }
    return {bytes, blocks};
  }

  // Each stack that holds at `state` more or less than at `base`.
  rows(state, base) {
    const rows = [];
    for (const stack of this.stacks) {
      const before = Data.at(stack, base);
      const after = Data.at(stack, state);
      const row = {
        stack,
        bytes: after.bytes - before.bytes,
        blocks: after.blocks - before.blocks,
        before: before.bytes,
        after: after.bytes,
      };
      if (row.bytes !== 0 || row.blocks !== 0) rows.push(row);
    }
    return rows;
  }

  title(state) {
    if (state === 0) return `before report ${this.reports[0].seq}`;
    const {seq, label} = this.reports[state - 1];
    return label === '' ? `report ${seq}` : `report ${seq}, ${label}`;
  }
}

// Bytes of `rows` that became more, and less.
function moved(rows) {
  let grew = 0;
  let shrank = 0;
  for (const {bytes} of rows) {
    if (bytes > 0) grew += bytes;
    else shrank -= bytes;
  }
  return {grew, shrank};
}
