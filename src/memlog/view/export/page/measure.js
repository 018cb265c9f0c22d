// What the page can show of each stack: what is live at a report, and what was allocated in all
// reports together. A row has `width`, by which boxes and shares are drawn, and `beside`, which is
// told with it.

const bytesText = (number) => countText(number, 'byte');
const blocksText = (number) => countText(number, 'block');

// Milliseconds, summed over many blocks, as a time.
function heldText(milliseconds) {
  for (const [unit, size] of [['d', 86400000], ['h', 3600000], ['min', 60000], ['s', 1000]]) {
    if (milliseconds >= size) return `${(milliseconds / size).toFixed(1)} ${unit}`;
  }
  return `${grouped(Math.round(milliseconds))} ms`;
}

// `text`, `besideText`: a number with its unit. `of`, `besideOf`: of a stack's turnover; without
// it the number is of a state.
const kMeasures = {
  live: {
    title: 'live bytes', column: 'bytes', beside: 'blocks', text: bytesText,
    besideText: blocksText,
  },
  blocks: {
    title: 'live blocks', column: 'blocks', beside: 'bytes', text: blocksText,
    besideText: bytesText, swapped: true,
  },
  allocated: {
    title: 'allocated bytes', column: 'allocated', beside: 'allocations', text: bytesText,
    besideText: (number) => countText(number, 'allocation'),
    of: (turnover) => turnover.bytes, besideOf: (turnover) => turnover.allocations,
  },
  allocations: {
    title: 'allocations', column: 'allocations', beside: 'allocated',
    text: (number) => countText(number, 'allocation'), besideText: bytesText,
    of: (turnover) => turnover.allocations, besideOf: (turnover) => turnover.bytes,
  },
  temporary: {
    title: 'temporary allocations', column: 'temporary', beside: 'allocations',
    text: (number) => countText(number, 'temporary allocation'),
    besideText: (number) => `of ${countText(number, 'allocation')}`,
    of: (turnover) => turnover.temporary, besideOf: (turnover) => turnover.allocations,
  },
  lifetime: {
    title: 'lifetime of freed blocks', column: 'held in all', beside: 'freed blocks',
    text: heldText, cell: heldText, besideText: blocksText,
    of: (turnover) => turnover.freed * turnover.lifetime, besideOf: (turnover) => turnover.freed,
  },
};

// Whether the measure is of a state, which is chosen with its base.
function isOfState(measure) {
  return !measure.of;
}

// Those that the data have something for, to choose from; what is live at the peak is that of a
// state.
function measureOptions(data) {
  const known = Object.entries(kMeasures).filter(([key, {of: turnover}]) =>
    turnover ? data.stacks.some((stack) => turnover(stack.turnover) !== 0) :
      key === 'live' || data.blocks);
  const names = known.map(([key, {title}]) => [key, title]);
  if (data.peak) names.splice(1, 0, ['peak', 'held at the peak']);
  return names.map(([value, title]) => make('option', {value}, title));
}

// The rows of a measure of turnover.
function turnoverRows(stacks, measure) {
  const rows = [];
  for (const stack of stacks) {
    const {turnover} = stack;
    const width = measure.of(turnover);
    if (width === 0) continue;
    rows.push({
      stack, width, beside: measure.besideOf(turnover), lifetime: turnover.lifetime,
      bytes: turnover.bytes, blocks: turnover.allocations,
    });
  }
  return rows;
}
