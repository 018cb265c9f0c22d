// How large blocks are: a bar for each power of two, its height the logarithm of their number. A
// report tells the blocks and bytes of a stack, so its blocks count at their average size, unless
// an event log told their sizes.

const kBars = 90;     // pixels, height of the longest
const kBelow = 18;    // for the sizes
const kWidest = 46;   // of a bar

// The exponent of the power of two that `size` is below.
function sizeClass(size) {
  return size < 1 ? 0 : Math.floor(Math.log2(size)) + 1;
}

function classText(number) {
  if (number === 0) return '0 bytes';
  const [least, most] = [2 ** (number - 1), 2 ** number - 1];
  return least === most ? '1 byte' : `${grouped(least)} to ${grouped(most)} bytes`;
}

// By class: blocks, bytes and stacks. `exactly`: returns the classes of a stack's blocks, or null.
function sizeHistogram(rows, exactly) {
  const classes = new Map();
  const count = (number, blocks, bytes) => {
    const sum = classes.get(number) ?? {blocks: 0, bytes: 0, stacks: 0};
    sum.blocks += blocks;
    sum.bytes += bytes;
    ++sum.stacks;
    classes.set(number, sum);
  };
  for (const {stack, bytes, blocks} of rows) {
    if (blocks <= 0 || bytes < 0) continue;
    const exact = exactly(stack) ?? [sizeClass(bytes / blocks), blocks, bytes];
    for (let i = 0; i < exact.length; i += 3) count(exact[i], exact[i + 1], exact[i + 2]);
  }
  return classes;
}

// `word`: what is counted.
function drawSizes(svg, classes, word) {
  const numbers = [...classes.keys()];
  const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
  const most = Math.max(...[...classes.values()].map(({blocks}) => blocks));
  const step = Math.min(kWidest, svg.clientWidth / (last - first + 1));
  const parts = [];
  for (let number = first; number <= last; ++number) {
    const x = (number - first) * step;
    const sum = classes.get(number) ?? {blocks: 0, bytes: 0, stacks: 0};
    // One block is a bar, too.
    const height = sum.blocks === 0 ? 0 : kBars * Math.log2(2 * sum.blocks) / Math.log2(2 * most);
    const text = `${classText(number)}: ${countText(sum.blocks, word)}, ` +
        `${bytesText(sum.bytes)} in ${countText(sum.stacks, 'stack')}`;
    parts.push(makeSvg('g', {'class': 'size', 'data-class': number, 'data-blocks': sum.blocks},
        makeSvg('title', {}, text),
        makeSvg('rect', {'class': 'size-room', x, y: 0, width: step, height: kBars}),
        makeSvg('rect', {
          'class': 'size-bar', x: x + 1, y: kBars - height, width: Math.max(0, step - 2), height,
        }),
        makeSvg('text', {x: x + step / 2, y: kBars + 13, 'text-anchor': 'middle'},
            number === 0 ? '0' : shortSize(2 ** (number - 1)))));
  }
  svg.replaceChildren(...parts);
  svg.setAttribute('height', kBars + kBelow);
}

// "64", "4K", "2M".
function shortSize(size) {
  const units = ['', 'K', 'M', 'G', 'T', 'P'];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(size) / 10));
  return `${size / 1024 ** unit}${units[unit]}`;
}
