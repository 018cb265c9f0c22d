'use strict';
// The pictures and the page of memlog export in Chromium, and speedscope's file in speedscope: does
// what a user does, and compares what is to be seen then with the numbers that the reports were
// made of. transcripts/browser.txt runs it, in a directory of its own.

const assert = require('node:assert/strict');
const {spawnSync} = require('node:child_process');
const {readFileSync, writeFileSync} = require('node:fs');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {chromium} = require('playwright-core');
const kPatience = 300000;  // milliseconds; only ends a hang
const kAll = (count) => Array.from({length: count}, (_, i) => i + 1);

// Bytes of four stacks, in blocks of 100, at the start and at each of five reports.
const kMain = '\tmain\tmain.c:9\t(/usr/bin/svc+0x900)\n';
const kServe = '\tserve\tserve.c:20\t(/usr/bin/svc+0x700)\n' + kMain;
const kStacks = [
  {name: 'start', callers: kMain, live: [0, 50000, 50000, 50000, 50000, 48000]},
  {name: 'leaky', callers: kServe, live: [0, 1000, 3000, 5000, 7000, 9000]},
  {name: 'cache', callers: kServe, live: [0, 0, 4000, 6000, 6500, 6500]},
  {name: 'swing', callers: kMain, live: [0, 800, 200, 900, 300, 0]},
];
const kReports = kAll(5);
const liveAt = (report) => kStacks.reduce((sum, {live}) => sum + live[report], 0);
const deltaAt = (report) => liveAt(report) - liveAt(report - 1);
const peakAt = (report) => Math.max(...kAll(report).map(liveAt)) + 1000;
const residentAt = (report) => 2 * peakAt(report) + 100 * report;

const grouped = (number) => number.toLocaleString('en-US');
const signed = (number) => (number < 0 ? '' : '+') + number;
const change = (number) => (number < 0 ? '' : '+') + grouped(number);
const percent = (part, whole) => `${(100 * part / whole).toFixed(2)}%`;

function reportText({pid, seq = 1, facts = '', seconds, delta, live, peak = '', entries}) {
  const taken = new Date(Date.UTC(2026, 10, 20, 20, 0, 0, 1000 * seconds)).toISOString();
  const lost = '# lost: frames=0 stacks=0 blocks=0 inflight=0\n';
  return `# memlog 2\n# program: /usr/bin/svc\n${facts}# pid: ${pid}\n# seq: ${seq}\n` +
      '# trigger: signal\n# started: 2026-11-20T20:00:00.000000Z\n' +
      `# taken: ${taken.replace('Z', '000Z')}\n` +
      `# delta: ${signed(delta[0])} bytes ${signed(delta[1])} blocks\n` +
      `# live: ${live[0]} bytes ${live[1]} blocks\n${peak}${lost}${entries}# end\n`;
}

function seriesText(report) {
  const entries = kStacks.map(({name, callers, live}, i) => {
    const bytes = live[report] - live[report - 1];
    return {bytes, text: `${signed(bytes)}\tblocks=${signed(bytes / 100)}\tlive=${live[report]}\t` +
        `stack=000000000000000${i + 1}\n\t${name}\t${name}.c:3\t(/usr/bin/svc+0x${i + 1}00)\n` +
        callers};
  });
  const told = entries.filter(({bytes}) => bytes !== 0).sort((a, b) => b.bytes - a.bytes);
  return reportText({
    pid: 77, seq: report, facts: `# label: round-${report}\n`, seconds: 10 * report,
    delta: [deltaAt(report), deltaAt(report) / 100], live: [liveAt(report), liveAt(report) / 100],
    peak: `# peak: ${peakAt(report)} bytes 2026-11-20T20:00:00.000000Z\n`,
    entries: told.map(({text}) => text).join('') +
        '# module: /usr/bin/svc build-id=5c05 base=0x55d0c0a00000\n' +
        `# rss: ${residentAt(report)} bytes\n# uptime: ${report}0.000 seconds\n# resolved: yes\n`,
  });
}

// A program that ran for less than a second: what it allocated and freed, its threads, the sizes of
// its blocks, a deep stack.
const kDeep = Array.from({length: 30}, (_, i) =>
  `\tdeep${i}\t(/usr/bin/svc+0x2${String(i).padStart(2, 0)})\n`).join('');
const kViews = reportText({
  pid: 78, facts: '# command: svc --name a\\x20b\n', seconds: 0.9, delta: [9450, 102],
  live: [9450, 102], peak: '# peak: 10000 bytes 2026-11-20T20:00:00.400000Z\n',
  entries: '+6400\tblocks=+100\tlive=6400\tallocs=100\tallocated=6400\tpeak=6400\t' +
      `stack=0000000000000001\n\tkeeper\tkeeper.c:2\t(/usr/bin/svc+0x300)\n${kMain}` +
      '+3000\tblocks=+1\tlive=3000\tallocs=1\tallocated=3000\tpeak=3000\t' +
      'stack=0000000000000002\n\tbuffer\tbuffer.c:2\t(/usr/bin/svc+0x400)\n' +
      '\tworker\tworker.c:5\t(/usr/bin/svc+0x500)\n\tstart_thread\t(/lib/libc.so.6+0x600)\n' +
      '+50\tblocks=+1\tlive=50\tallocs=1\tallocated=50\tpeak=50\tstack=0000000000000003\n' +
      `${kDeep}${kMain}+0\tblocks=+0\tlive=0\tallocs=1000\tallocated=32000\tfrees=1000\t` +
      'freed=32000\ttemporary=800\tlifetime-min=1\tlifetime-mean=5\tlifetime-max=9\tpeak=550\t' +
      `stack=0000000000000004\n\tscratch\tscratch.c:7\t(/usr/bin/svc+0x800)\n${kMain}`,
});

// The page `views` as --sizes makes it: with the sizes of the 100 blocks of `keeper`.
const withSizes = (page) => page.replace(/(?<=id="data">).*?(?=<\/script>)/s, (text) => {
  const data = JSON.parse(text);
  data.stacks.find(([stack]) => stack === '0000000000000001')[7] = [1, [4, 80, 800, 9, 20, 5600]];
  return JSON.stringify({...data, exactSizes: true});
});

// A process that has run for 100 s, and the timeline that memlog run has written of it.
const kRunning = reportText({
  pid: 79, seconds: 100, delta: [3000, 1], live: [3000, 1],
  entries: '+3000\tblocks=+1\tlive=3000\tstack=0000000000000002\n' +
      `\tbuffer\t(/usr/bin/svc+0x400)\n${kMain}# uptime: 100.000 seconds\n`,
});
const kCutTimeline =
    '# timeline 1\n# program: /usr/bin/svc\n# pid: 79\n# started: 2026-11-20T20:00:00.000000Z\n' +
    '# interval: 1000 ms\n# columns: milliseconds live blocks resident allocations\n' +
    '1000\t1000\t1\t50000\t1\n41000\t2000\t1\t60000\t1\n81000\t3000\t1\t60000\t1\n' +
    '82000\t3000\t1\t60000\t1\n# end\n';

// What a browser must not take for markup, script or the end of one.
const kHostile = '</script><script>harmed=true</script><!--<script>]]><b ' +
    'onload=\'harmed=true\'>&amp;"\u2028\uffff';

function makeFile(format, file, ...words) {
  const made = spawnSync('memlog', ['export', '--no-resolve', '-f', format, '-o', file, ...words],
      {encoding: 'utf8'});
  assert.deepEqual([made.status, made.stderr], [0, ''], made.error);
}

let browser;
before(async () => {
  const series = kReports.map((report) => `svc-77-${report}.memlog`);
  series.forEach((file, i) => writeFileSync(file, seriesText(i + 1)));
  makeFile('flamegraph', 'graph.svg', ...series);
  makeFile('flamegraph', 'base.svg', '--base', series[1], series[4]);
  makeFile('html', 'page.html', ...series);
  makeFile('speedscope', 'scope.json', ...series);
  writeFileSync('svc-78-1.memlog', kViews);
  writeFileSync('buffer.c', Buffer.from('one\n\ttwo("\\n");  // \xff\nthree\n', 'latin1'));
  makeFile('html', 'views.html', '--source', '--source-path', '.', 'svc-78-1.memlog');
  writeFileSync('exact.html', withSizes(readFileSync('views.html', 'utf8')));
  writeFileSync('svc-79-1.memlog', kRunning);
  writeFileSync('svc-79.timeline', kCutTimeline);
  makeFile('html', 'cut.html', 'svc-79-1.memlog');
  writeFileSync('hostile.memlog', reportText({
    pid: 80, seconds: 1, delta: [64, 1], live: [64, 1],
    entries: '+64\tblocks=+1\tlive=64\tstack=00000000000000aa\n' +
        `\t${kHostile}\t(/lib/a.so+0x10)\n\tmain\t(/bin/app+0x20)\n`,
  }));
  for (const [format, file] of [['flamegraph', 'hostile.svg'], ['html', 'hostile.html']]) {
    makeFile(format, file, '--frames', 'all', 'hostile.memlog');
  }
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium', timeout: kPatience,
    args: [...root, '--enable-unsafe-swiftshader'],  // speedscope draws with WebGL
  });
});
after(() => browser?.close());

// A test with a page without network. Nothing goes wrong in it, and it asks for no other file.
function onPage(what, file, look, {loads = false, ...options} = {}) {
  test(what, async () => {
    const context = await browser.newContext(
        {offline: true, viewport: {width: 1216, height: 900}, timezoneId: 'UTC', ...options});
    const page = await context.newPage();
    page.setDefaultTimeout(kPatience);
    const problems = [];
    const requests = [];
    page.on('console', (message) => {
      const ofDriver = message.text().includes('GL Driver Message');
      if (['error', 'warning'].includes(message.type()) && !ofDriver) problems.push(message.text());
    });
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(`file://${path.resolve(file)}`);
    await look(page);
    await context.close();
    assert.deepEqual(problems, []);
    if (!loads) assert.equal(requests.length, 1, `${requests}`);
  });
}

const texts = (page, selector) => page.locator(selector).allTextContents();
const rows = (page, table = 'stacks') => page.locator(`#${table} tbody tr`).evaluateAll(
    (lines) => lines.map((line) => [...line.cells].map((cell) => cell.textContent)));

// The boxes that are shown: name, and left edge and width in parts of the graph.
const boxes = (page) => page.evaluate(() => {
  const graph = document.getElementById('graph');
  const whole = graph.width.baseVal.value;
  const shown = [...graph.querySelectorAll('.box')].filter((box) => box.style.display !== 'none');
  return shown.map((box) => ({
    title: box.querySelector('title').textContent,
    label: box.querySelector('text').textContent,
    x: box.x.baseVal.value / whole,
    width: box.width.baseVal.value / whole,
    y: box.y.baseVal.value,
    match: box.classList.contains('match'),
    colour: getComputedStyle(box.querySelector('rect')).fill,
  }));
});
const boxOf = (page, name) => page.locator('.box').filter(
    {has: page.locator('title', {hasText: new RegExp(`^${name}\\n`)})});

const nameOf = ({title}) => title.split('\n')[0];
const names = (shown) => shown.map(nameOf).sort();
const matches = (shown) => shown.filter(({match}) => match).map(({label}) => label);
function box(shown, name) {
  const found = shown.find((one) => nameOf(one) === name);
  assert.ok(found, `no box ${name} among ${names(shown)}`);
  return found;
}
function near(found, expected, most = 0.0005) {
  assert.ok(Math.abs(found - expected) <= most, `${found} in place of ${expected}`);
}
const titled = (shown, name, text) => assert.equal(box(shown, name).title, `${name}\n${text}`);
const wide = (shown, name, part, whole) => near(box(shown, name).width, part / whole);

onPage('the flame graph', 'graph.svg', async (page) => {
  const start = await boxes(page);
  assert.deepEqual(names(start), ['all', 'cache', 'leaky', 'main', 'serve', 'start']);
  titled(start, 'all', '63,500 bytes (100.00%), 635 blocks');
  titled(start, 'serve', '15,500 bytes (24.41%), 155 blocks');
  titled(start, 'leaky', '9,000 bytes (14.17%), 90 blocks');
  assert.equal(box(start, 'leaky').label, 'leaky');
  const known = {all: 63500, start: 48000, serve: 15500, cache: 6500, leaky: 9000};
  for (const [name, bytes] of Object.entries(known)) wide(start, name, bytes, 63500);
  near(box(start, 'serve').x, 48000 / 63500);

  await boxOf(page, 'serve').click();
  const zoomed = await boxes(page);
  assert.deepEqual(names(zoomed), ['all', 'cache', 'leaky', 'main', 'serve']);
  for (const name of ['all', 'main', 'serve']) wide(zoomed, name, 1, 1);
  wide(zoomed, 'leaky', 9000, 15500);
  wide(zoomed, 'cache', 6500, 15500);
  await page.click('#reset');
  assert.deepEqual(await boxes(page), start);

  // serve is in it with all below, start besides.
  await page.keyboard.press('Control+f');
  await page.keyboard.type('^(serve|leaky)$');
  assert.equal(await page.textContent('#matched'), `matched ${percent(15500, 63500)}`);
  const searched = await boxes(page);
  assert.deepEqual(matches(searched), ['serve', 'leaky']);
  assert.notEqual(box(searched, 'leaky').colour, box(start, 'leaky').colour);
  await page.fill('#search', 'leaky(');
  assert.equal(await page.textContent('#matched'), 'not a regular expression');
  await page.fill('#search', '');

  await boxOf(page, 'all').focus();
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
  assert.equal(await page.textContent('#told'), 'serve: 15,500 bytes (24.41%), 155 blocks');
  assert.deepEqual(await boxes(page), zoomed);
  await page.keyboard.press('Escape');
  assert.deepEqual(await boxes(page), start);
});

onPage('the flame graph without scripts', 'graph.svg', async (page) => {
  assert.deepEqual(await texts(page, '.box > text'),
      ['all', 'main', 'start', 'serve', 'leaky', 'cache']);
  assert.equal((await texts(page, '.box > title'))[4], 'leaky\n9,000 bytes (14.17%), 90 blocks');
  assert.equal(await page.locator('input').count(), 0);
}, {javaScriptEnabled: false});

// From report 2 to 5 start and swing became less; 8,500 of 10,700 bytes that moved were growth.
onPage('the difference is red and blue', 'base.svg', async (page) => {
  assert.deepEqual(await texts(page, 'svg.flame > text'),
      ['bytes of svc', 'red grew 8,500 bytes in 2 stacks', 'blue shrank 2,200 bytes in 2 stacks',
        '2026-11-20T20:00:20.000000Z to 2026-11-20T20:00:50.000000Z']);
  const shown = await boxes(page);
  titled(shown, 'all',
      '+6,300 bytes: grew 8,500, shrank 2,200 (100.00% of what moved), +63 blocks');
  titled(shown, 'start', '-2,000 bytes: grew 0, shrank 2,000 (18.69% of what moved), -20 blocks');
  wide(shown, 'leaky', 6000, 10700);
  wide(shown, 'start', 2000, 10700);
  const redOverBlue = (name) => {
    const [red, , blue] = box(shown, name).colour.match(/^rgb\((\d+), (\d+), (\d+)\)$/).slice(1);
    return red - blue;
  };
  assert.ok(redOverBlue('leaky') > 60);
  assert.ok(redOverBlue('main') > 10);
  assert.ok(redOverBlue('leaky') > redOverBlue('main'));
  assert.ok(redOverBlue('start') < -60);
});

onPage('the timeline', 'page.html', async (page) => {
  assert.deepEqual(await rows(page, 'reports'), kReports.map((i) =>
    [`${i}`, `${i}0.000`, grouped(liveAt(i)), grouped(peakAt(i)), change(deltaAt(i)),
      `${liveAt(i) / 100}`, 'signal', `round-${i}`]));
  const dots = page.locator('#timeline circle');
  assert.equal(await dots.count(), kReports.length);
  const heights = await dots.evaluateAll((all) => all.map((dot) => Number(dot.getAttribute('cy'))));
  const height = (report) => heights[report - 1];
  assert.ok(height(4) < height(1));
  // Dots and the curve, which has a point at each report, are on one scale.
  const scale = (height(1) - height(4)) / (liveAt(4) - liveAt(1));
  const curve = await page.getAttribute('#timeline .resident-line', 'd');
  const resident = curve.slice(1).split('L').map((point) => Number(point.split(' ')[1]));
  await page.focus('#timeline');
  await page.keyboard.press('Home');
  for (const i of kReports) {
    near(height(i), height(1) - scale * (liveAt(i) - liveAt(1)), 0.01);
    near(resident[i - 1], height(1) - scale * (residentAt(i) - liveAt(1)), 0.01);
    assert.equal(await page.textContent('#moment'),
        `report ${i} of 5, round-${i}: live ${grouped(liveAt(i))} bytes, peak ` +
        `${grouped(peakAt(i))}, resident ${grouped(residentAt(i))}, ${change(deltaAt(i))} since ` +
        `the report before; ${i}0.000 s after the start, 2026-11-20 20:00:${i}0 UTC`);
    await page.keyboard.press('ArrowRight');
  }
});

// The rows of the table of stacks: those of `order`, with callers, so that the stacks of one
// function are told apart.
const pathOf = ({name, callers}) =>
  `${name} ${name}.c:3${callers === kServe ? ' < serve serve.c:20' : ''} < main main.c:9`;
const liveRows = (report, order) => order.map((i) => {
  const bytes = kStacks[i].live[report];
  return [grouped(bytes), percent(bytes, liveAt(report)), `${bytes / 100}`, pathOf(kStacks[i])];
});
const changedRows = (base, report, order, moved) => order.map((i) => {
  const [from, to] = [kStacks[i].live[base], kStacks[i].live[report]];
  return [change(to - from), percent(Math.abs(to - from), moved), change((to - from) / 100),
    grouped(from), grouped(to), pathOf(kStacks[i])];
});
const summary = (page) => page.textContent('#summary');

onPage('the page', 'page.html', async (page) => {
  await page.locator('#timeline circle').nth(3).click();
  assert.equal(await page.inputValue('#report'), '4');
  assert.deepEqual(await rows(page), liveRows(4, [0, 1, 2, 3]));
  const live = await boxes(page);
  titled(live, 'serve', '13,500 bytes (21.16%), 135 blocks');
  wide(live, 'serve', 13500, liveAt(4));
  await page.click('[data-key=width] button');
  assert.deepEqual(await rows(page), liveRows(4, [3, 2, 1, 0]));
  await page.click('[data-key=stack] button');
  assert.deepEqual(await rows(page), liveRows(4, [2, 1, 0, 3]));
  await page.click('[data-key=width] button');

  await page.fill('#search', 'leak|swi');
  assert.deepEqual(await rows(page), liveRows(4, [1, 3]));
  assert.equal(await page.textContent('#matched'),
      `matched ${percent(7300, liveAt(4))} in 2 stacks`);
  assert.equal(matches(await boxes(page)).length, 2);
  await page.fill('#search', '');

  // Any two reports are compared.
  await page.locator('#timeline circle').nth(1).click({modifiers: ['Shift']});
  assert.equal(await page.inputValue('#base'), '2');
  assert.deepEqual(await rows(page), changedRows(2, 4, [1, 2, 3], 6600));
  assert.equal(await summary(page), '+6,600 bytes: grew 6,600 (red), shrank 0 (blue)');
  const compared = await boxes(page);
  wide(compared, 'leaky', 4000, 6600);
  assert.ok(box(compared, 'all').y > box(compared, 'leaky').y);
  await page.selectOption('#report', '5');
  await page.selectOption('#base', '3');
  assert.deepEqual(await rows(page), changedRows(3, 5, [1, 2, 3, 0], 7400));
  assert.equal(await summary(page), '+1,600 bytes: grew 4,500 (red), shrank 2,900 (blue)');
  // A report does not differ from itself.
  await page.selectOption('#report', '3');
  assert.deepEqual([await rows(page), await boxes(page)], [[], []]);
  assert.equal(await summary(page), '+0 bytes: grew 0 (red), shrank 0 (blue)');
  await page.selectOption('#report', '5');

  await page.check('#icicle');
  assert.equal(box(await boxes(page), 'all').y, 0);
  await page.check('#tree');
  await page.locator('.leaf', {hasText: 'leaky'}).waitFor();
  const branch = (name, grew, shrank, share) =>
    `${name} ${change(grew - shrank)} bytes: grew ${grouped(grew)}, shrank ${grouped(shrank)} ` +
    `(${share} of what moved), ${change((grew - shrank) / 100)} blocks`;
  assert.deepEqual(await texts(page, '#branches :is(summary, .leaf)'),
      [branch('all', 4500, 2900, '100.00%'), branch('main', 4500, 2900, '100.00%'),
        branch('serve', 4500, 0, '60.81%'), branch('leaky', 4000, 0, '54.05%'),
        branch('cache', 500, 0, '6.76%'), branch('start', 0, 2000, '27.03%'),
        branch('swing', 0, 900, '12.16%')]);
  assert.equal(await page.isVisible('#graph'), false);
  await page.check('#icicle');
  await page.click('.stack >> nth=0');
  assert.deepEqual(await texts(page, '.frames li'),
      ['leaky leaky.c:3 (svc)', 'serve serve.c:20 (svc)', 'main main.c:9 (svc)']);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await paper(), 'rgb(253, 252, 249)');
  await page.emulateMedia({colorScheme: 'dark'});
  assert.equal(await paper(), 'rgb(23, 25, 29)');
}, {colorScheme: 'light'});

// What the rows of the table begin with.
async function expectRows(page, expected) {
  const found = await rows(page);
  assert.equal(found.length, expected.length, `${found}`);
  assert.deepEqual(found.map((row, i) => row.slice(0, expected[i].length)), expected);
}

const sizeBars = (page) => page.locator('#sizes .size').evaluateAll((bars) => bars.map((bar) => ({
  number: Number(bar.dataset.class), title: bar.querySelector('title').textContent,
  height: bar.querySelector('.size-bar').height.baseVal.value,
})));
const kAverages =
    'The blocks of a stack count at their average size: reports do not hold the sizes.';

onPage('what was allocated and freed', 'views.html', async (page) => {
  assert.deepEqual(await texts(page, '#measure option'),
      ['live bytes', 'held at the peak', 'live blocks', 'allocated bytes', 'allocations',
        'temporary allocations', 'lifetime of freed blocks']);
  const keeper = 'keeper keeper.c:2 < main main.c:9';
  const buffer = 'buffer buffer.c:2 < worker worker.c:5';
  const scratch = 'scratch scratch.c:7 < main main.c:9';
  const kRows = {
    live: [['6,400', '67.72%', '100', keeper], ['3,000', '31.75%', '1', buffer],
      ['50', '0.53%', '1']],
    blocks: [['100', '98.04%', '6,400', keeper], ['1', '0.98%', '3,000'], ['1', '0.98%', '50']],
    allocated: [['32,000', '77.20%', '1,000', '5 ms', scratch],
      ['6,400', '15.44%', '100', '', keeper], ['3,000', '7.24%', '1', ''],
      ['50', '0.12%', '1', '']],
    allocations: [['1,000', '90.74%', '32,000', '5 ms', scratch], ['100', '9.07%', '6,400'],
      ['1', '0.09%', '3,000'], ['1', '0.09%', '50']],
    temporary: [['800', '100.00%', '1,000', '5 ms', scratch]],
    lifetime: [['5.0 s', '100.00%', '1,000', '5 ms', scratch]],
    peak: [['6,400', '64.00%', keeper], ['3,000', '30.00%', buffer], ['550', '5.50%', scratch],
      ['50', '0.50%']],
  };
  const shown = {};
  for (const [measure, expected] of Object.entries(kRows)) {
    await page.selectOption('#measure', measure);
    await expectRows(page, expected);
    shown[measure] = {boxes: await boxes(page), sizes: await sizeBars(page)};
    // Only what is live is compared.
    const comparable = ['live', 'blocks', 'peak'].includes(measure);
    assert.equal(await page.isDisabled('#base'), !comparable, measure);
    if (['live', 'allocated'].includes(measure)) {
      assert.ok((await page.textContent('#sizes-key')).startsWith(kAverages));
    }
    if (measure === 'temporary') {
      assert.deepEqual(await texts(page, '#stacks th'),
          ['temporary', 'share', 'allocations', 'mean lifetime',
            'stack: function and line, callers']);
    } else if (measure === 'allocated') {
      assert.equal(await summary(page), '41,450 bytes in 1 report');
      assert.ok(await page.isVisible('#sizes'));
    }
  }
  assert.equal(await page.inputValue('#report'), '-1');
  assert.equal(await page.isVisible('#sizes'), false);
  titled(shown.allocated.boxes, 'scratch', '32,000 bytes (77.20%), 1,000 allocations');
  wide(shown.allocated.boxes, 'scratch', 32000, 41450);
  titled(shown.temporary.boxes, 'scratch',
      '800 temporary allocations (100.00%), of 1,000 allocations');

  // Bars of powers of two, on a logarithmic scale: 32 to 63 bytes up to 2,048 to 4,095.
  const bars = shown.live.sizes;
  assert.deepEqual(bars.map(({number}) => number), [6, 7, 8, 9, 10, 11, 12]);
  assert.equal(bars[0].title, '32 to 63 bytes: 1 block, 50 bytes in 1 stack');
  assert.equal(bars[1].title, '64 to 127 bytes: 100 blocks, 6,400 bytes in 1 stack');
  assert.equal(bars[6].title, '2,048 to 4,095 bytes: 1 block, 3,000 bytes in 1 stack');
  assert.equal(bars[2].height, 0);
  near(bars[0].height / bars[1].height, Math.log(2) / Math.log(200), 0.001);
  assert.equal(shown.allocated.sizes[0].title,
      '32 to 63 bytes: 1,001 allocations, 32,050 bytes in 2 stacks');

  // 30 functions and main are deep: the graph hangs, also inverted.
  assert.ok(await page.isChecked('#icicle'));
  await page.selectOption('#measure', 'live');
  await page.check('#inverted');
  const inverted = await boxes(page);
  const {y} = box(inverted, 'keeper');
  assert.ok(y > 0);
  for (const name of ['buffer', 'deep0']) assert.equal(box(inverted, name).y, y, name);
  assert.equal(box(inverted, 'worker').y, 2 * y);
  assert.equal(box(shown.live.boxes, 'worker').y, y);
  wide(inverted, 'keeper', 6400, 9450);
  await page.uncheck('#inverted');
  assert.deepEqual(await texts(page, '#thread option'), ['all', 'main', 'worker']);
  await page.selectOption('#thread', {label: 'worker'});
  await expectRows(page, [['3,000', '100.00%', '1', buffer]]);
  assert.equal(await summary(page), '3,000 bytes');

  assert.ok((await page.textContent('#about')).startsWith("svc --name 'a b', pid 78,"));
  assert.equal(await page.textContent('#curve-end'), '');
  const axis = await texts(page, '#timeline text');  // as many as there is room for
  assert.deepEqual(axis.filter((text) => text.endsWith(' s')),
      kAll(11).map((i) => `${(0.35 + 0.05 * i).toFixed(2)} s`));
  await page.click('.stack >> nth=0');
  assert.deepEqual(await texts(page, '.source'),
      ['    1  one\n    2  \ttwo("\\n");  // \ufffd\n    3  three\n']);
  assert.deepEqual(await texts(page, '.source .here'), ['    2  \ttwo("\\n");  // \ufffd\n']);
  await page.setViewportSize({width: 500, height: 900});
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 500);
});

onPage('sizes are exact where they are known', 'exact.html', async (page) => {
  const titles = async () => (await sizeBars(page)).map(({title}) => title);
  const known = ['8 to 15 bytes: 80 blocks, 800 bytes in 1 stack',
    '256 to 511 bytes: 20 blocks, 5,600 bytes in 1 stack'];
  const all = await titles();
  // The others have an average only; a search leaves them out.
  for (const bar of [...known, '2,048 to 4,095 bytes: 1 block, 3,000 bytes in 1 stack']) {
    assert.ok(all.includes(bar), bar);
  }
  assert.equal(await page.textContent('#sizes-key'),
      'Sizes are exact, from the event log; stacks that it does not have count at their average ' +
      'size.');
  await page.fill('#search', 'keeper');
  const found = await titles();
  for (const bar of known) assert.ok(found.includes(bar), bar);
  assert.equal(found.length, 6);
  assert.equal(await page.textContent('#sizes-key'), 'Sizes are exact, from the event log.');
});

// What memlog run wrote of a process that ran on: the last report is 18 s behind its last sample.
onPage('curves that end say why', 'cut.html', async (page) => {
  assert.equal(await page.textContent('#curve-end'),
      'The curves end at 82.0 of 100.0 s: memlog run writes the timeline of a running process ' +
      'when its time has doubled, next at 164.0 s, and when the process ends.');
});

// As wide as a phone, and then as narrow as can be: it does not scroll sideways, and no title of a
// column is cut off.
const kManual = path.resolve(__dirname, '../../../index.html');
for (const file of ['page.html', 'views.html', 'exact.html', 'cut.html', kManual]) {
  onPage(`${file} fits a phone`, file, async (page) => {
    const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.equal(await sideways(), 0);
    assert.equal(await page.locator('#stacks th').evaluateAll((titles) =>
      titles.filter((title) => title.scrollWidth > title.clientWidth).length), 0);
    await page.setViewportSize({width: 320, height: 844});
    assert.equal(await sideways(), 0);
    await page.setViewportSize({width: 1, height: 844});
    await page.waitForFunction(() => innerWidth === 1);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }, {viewport: {width: 390, height: 844}, loads: file === kManual});
}

for (const file of ['hostile.svg', 'hostile.html']) {
  onPage(`hostile names are names in ${file}`, file, async (page) => {
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    const shown = await boxes(page);
    assert.equal(shown.length, 3);
    // No XML may have U+FFFF.
    const name = file.endsWith('.svg') ? kHostile.replace('\uffff', '\ufffd') : kHostile;
    assert.equal(shown[2].title, `${name}\n64 bytes (100.00%), 1 block`);
  });
}

const kSpeedscope = `${process.env.NODE_PATH}/speedscope/dist/release/index.html`;
onPage('speedscope', kSpeedscope, async (page) => {
  await page.setInputFiles('input[type=file]', 'scope.json');
  await page.getByText('Sandwich').click();
  await page.getByText('leaky').waitFor();
  const text = (await page.evaluate(() => document.body.innerText)).replace(/[\n\t]/g, '');
  // Total, own, function; KB are of 1024 bytes.
  for (const part of ['bytes of /usr/bin/svc', '62.01 KB (100%)0 B (<0.01%)main',
    '46.88 KB (76%)46.88 KB (76%)start', '15.14 KB (24%)0 B (<0.01%)serve',
    '8.79 KB (14%)8.79 KB (14%)leaky', '6.35 KB (10%)6.35 KB (10%)cache']) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
}, {loads: true});
