// What the reports say: src/memlog/view/export/report_page.cc writes it.
//
// State 0 is before the first report, state n when the nth was taken, kPeak the last peak, of which
// reports tell bytes only, an event log sizes, too. A stack has its values where they changed,
// [state, bytes, blocks, state, bytes, blocks, ...]; before that it held nothing. Its turnover is
// that of all reports together. `sizes`: [state, classes, state, classes, ...], where the classes
// of its blocks' sizes changed: [class, blocks, bytes, ...], or null: not known.

const kPeak = -1;

class Data {
  constructor(text) {
    Object.assign(this, JSON.parse(text));
    // `all`: innermost first. `folded`: the responsible frame and its callers, without libraries;
    // null: runtimes keep it to the end, and all such stacks are one.
    const kept = [{name: this.keptByRuntimes, source: '', module: ''}];
    this.stacks = this.stacks.map((stack) => {
      const [id, frames, values, peak, folded, turnover, begun, sizes] = stack;
      const all = frames.map((frame) => this.frame(frame));
      const [allocations, bytes, temporary, freed, lifetime] = turnover;
      return {
        id, values, peak, all, sizes,
        folded: folded?.map((i) => ({...all[i], name: all[i].brief})) ?? kept,
        kept: folded === null,
        turnover: {allocations, bytes, temporary, freed, lifetime},
        begun: begun === null ? null : all[begun].brief,
      };
    });
    for (const stack of this.stacks) stack.peakBlocks = blocksOf(Data.sizesAt(stack, kPeak));
    this.peakBlocks = this.stacks.every(({peak, peakBlocks}) => peak === 0 || peakBlocks !== null);
    this.show(this.allFrames);
    for (const report of this.reports) {
      report.seconds = report.uptime === '' ?
          (Date.parse(report.taken) - Date.parse(this.started)) / 1000 : Number(report.uptime);
    }
    if (this.peak) {
      this.peak.seconds = (Date.parse(this.peak.time) - Date.parse(this.started)) / 1000;
    }
  }

  // The functions that the stacks' threads began with, those of the most stacks first.
  beginnings() {
    const counts = new Map();
    for (const {begun} of this.stacks) counts.set(begun, (counts.get(begun) ?? 0) + 1);
    return [...counts.keys()].toSorted((a, b) => (a === null) - (b === null) ||
        counts.get(b) - counts.get(a));
  }

  // Chooses which frames of the stacks are shown.
  show(all) {
    for (const stack of this.stacks) {
      stack.frames = all ? stack.all : stack.folded;
      stack.text = stack.frames.map((frame) => frame.name).join(' < ');
    }
  }

  frame(index) {
    const [name, source, module, brief] = this.frames[index];
    return {
      name: this.names[name], source: this.sources[source], module: this.modules[module],
      brief: this.names[brief], lines: this.listings[index],
    };
  }

  // What the stack holds at `state` (null: nothing).
  static at(stack, state) {
    let bytes = 0;
    let blocks = 0;
    if (state === null) return {bytes, blocks};
    if (state === kPeak) return {bytes: stack.peak, blocks: stack.peakBlocks ?? 0};
    for (let i = 0; i < stack.values.length && stack.values[i] <= state; i += 3) {
      bytes = stack.values[i + 1];
      blocks = stack.values[i + 2];
    }
    return {bytes, blocks};
  }

  // The classes of the sizes of the stack's blocks at `state`; null: not known.
  static sizesAt(stack, state) {
    let classes = null;
    for (let i = 0; i < stack.sizes.length && stack.sizes[i] <= state; i += 2) {
      classes = stack.sizes[i + 1];
    }
    return classes;
  }

  // Each stack that holds at `state` more or less than at `base`; of turnover each that has some.
  rows(measure, state, base) {
    if (measure.of) return turnoverRows(this.stacks, measure);
    const rows = [];
    const counts = this.counts(state, base);
    for (const stack of this.stacks) {
      const before = Data.at(stack, base);
      const after = Data.at(stack, state);
      const bytes = after.bytes - before.bytes;
      const blocks = counts ? after.blocks - before.blocks : 0;
      const row = {
        stack, bytes, blocks, width: bytes, beside: blocks,
        before: before.bytes, after: after.bytes,
      };
      if (measure.swapped) {
        Object.assign(row, {
          width: blocks, beside: bytes, before: before.blocks, after: after.blocks,
        });
      }
      if (row.bytes !== 0 || row.blocks !== 0) rows.push(row);
    }
    return rows;
  }

  // Whether blocks are known at both.
  counts(state, base) {
    return this.blocks && (this.peakBlocks || (state !== kPeak && base !== kPeak));
  }

  // When, in seconds after the start, and what was live.
  point(state) {
    return state === kPeak ? {seconds: this.peak.seconds, live: this.peak.bytes} :
        this.reports[state - 1];
  }

  // Why the sampled curves end before the reports do; '': they do not.
  curveEnd() {
    const [before, last] = this.samples.slice(-2).map(([time]) => time / 1000);
    const {seconds, trigger} = this.reports.at(-1);
    if (this.ofLog || last === undefined || seconds - last <= 2 * (last - before)) return '';
    return `The curves end at ${last.toFixed(1)} of ${seconds.toFixed(1)} s: ` +
        (trigger === 'exit' ? 'memlog run ended before the process.' :
            `${kDoubled}, next at ${(2 * last).toFixed(1)} s, and when the process ends.`);
  }

  // The states that have a time, in its order.
  stops() {
    const states = this.reports.map((_, i) => i + 1);
    if (this.peak) states.push(kPeak);
    return states.toSorted((a, b) => this.point(a).seconds - this.point(b).seconds);
  }

  title(state) {
    if (state === kPeak) return 'the peak';
    if (state === 0) return `before report ${this.reports[0].seq}`;
    const {seq, label} = this.reports[state - 1];
    const name = `report ${seq} of ${this.reports.at(-1).seq}`;
    const more = label || (this.ofLog ? 'the end of the log' : '');
    return more === '' ? name : `${name}, ${more}`;
  }
}

// Of classes of sizes, as in a stack.
function blocksOf(classes) {
  return classes && classes.reduce((sum, number, i) => i % 3 === 1 ? sum + number : sum, 0);
}

// How much of `rows` became more, and less.
function moved(rows) {
  let grew = 0;
  let shrank = 0;
  for (const {width} of rows) {
    if (width > 0) grew += width;
    else shrank -= width;
  }
  return {grew, shrank};
}
