'use strict';
// browser.cjs DIRECTORY SPEEDSCOPE: opens the files that browser_test.cc has put into DIRECTORY in
// Chromium, does what a user does, and prints as JSON what is to be seen then.

const path = require('node:path');
const {chromium} = require('playwright-core');
const [directory, speedscope] = process.argv.slice(2);
const kPatience = 300000;  // milliseconds; only ends a hang

const url = (name) => `file://${directory}/${name}`;
const texts = (page, selector) => page.locator(selector).allTextContents();

// A page without network that notes what it asks for and what goes wrong in it.
async function open(browser, address, options = {}) {
  const context = await browser.newContext(
      {offline: true, viewport: {width: 1216, height: 900}, timezoneId: 'UTC', ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(kPatience);
  const facts = {problems: [], requests: []};
  page.on('console', (message) => {
    const ofDriver = message.text().includes('GL Driver Message');
    if (['error', 'warning'].includes(message.type()) && !ofDriver) {
      facts.problems.push(message.text());
    }
  });
  page.on('pageerror', (error) => facts.problems.push(error.message));
  page.on('request', (request) => facts.requests.push(request.url()));
  await page.goto(address);
  return {page, facts};
}

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

async function flameGraph(browser) {
  const {page, facts} = await open(browser, url('graph.svg'));
  facts.start = await boxes(page);
  await boxOf(page, 'serve').click();
  facts.zoomed = await boxes(page);
  await page.click('#reset');
  facts.reset = await boxes(page);
  await page.keyboard.press('Control+f');
  await page.keyboard.type('^(serve|leaky)$');
  facts.matched = await page.textContent('#matched');
  facts.searched = await boxes(page);
  await page.fill('#search', 'leaky(');
  facts.refused = await page.textContent('#matched');
  await page.fill('#search', '');
  await boxOf(page, 'all').focus();
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
  facts.told = await page.textContent('#told');
  facts.byKeys = await boxes(page);
  await page.keyboard.press('Escape');
  facts.escaped = await boxes(page);
  await page.context().close();
  return facts;
}

async function withoutScripts(browser, name) {
  const {page, facts} = await open(browser, url(name), {javaScriptEnabled: false});
  facts.titles = await texts(page, '.box > title');
  facts.labels = await texts(page, '.box > text');
  facts.fields = await page.locator('input').count();
  await page.context().close();
  return facts;
}

async function difference(browser) {
  const {page, facts} = await open(browser, url('base.svg'));
  facts.boxes = await boxes(page);
  facts.head = await texts(page, 'svg.flame > text');
  await page.context().close();
  return facts;
}

const rows = (page, table) => page.locator(`#${table} tbody tr`).evaluateAll(
    (lines) => lines.map((line) => [...line.cells].map((cell) => cell.textContent)));

async function timeline(page) {
  const facts = {dots: [], told: []};
  for (const dot of await page.locator('#timeline circle').all()) {
    facts.dots.push(Number(await dot.getAttribute('cy')));
  }
  const curve = await page.getAttribute('#timeline .resident-line', 'd');
  facts.resident = curve.slice(1).split('L').map((point) => Number(point.split(' ')[1]));
  await page.focus('#timeline');
  await page.keyboard.press('Home');
  for (let i = 0; i < facts.dots.length; ++i) {
    facts.told.push(await page.textContent('#moment'));
    await page.keyboard.press('ArrowRight');
  }
  return facts;
}

async function report(browser) {
  const {page, facts} = await open(browser, url('page.html'), {colorScheme: 'light'});
  facts.timeline = await timeline(page);
  facts.reports = await rows(page, 'reports');

  await page.locator('#timeline circle').nth(3).click();
  facts.chosen = await page.inputValue('#report');
  facts.live = {boxes: await boxes(page), rows: await rows(page, 'stacks')};
  await page.click('[data-key=width] button');
  facts.ascending = await rows(page, 'stacks');
  await page.click('[data-key=stack] button');
  facts.byName = await rows(page, 'stacks');
  await page.click('[data-key=width] button');
  await page.fill('#search', 'leak|swi');
  facts.filtered = {
    rows: await rows(page, 'stacks'), text: await page.textContent('#matched'),
    boxes: await boxes(page),
  };
  await page.fill('#search', '');

  await page.locator('#timeline circle').nth(1).click({modifiers: ['Shift']});
  facts.base = await page.inputValue('#base');
  facts.compared = {
    boxes: await boxes(page), rows: await rows(page, 'stacks'),
    text: await page.textContent('#summary'),
  };
  await page.selectOption('#report', '5');
  await page.selectOption('#base', '3');
  facts.comparedOther = {
    rows: await rows(page, 'stacks'), text: await page.textContent('#summary'),
  };

  await page.selectOption('#report', '3');
  facts.same = {
    rows: await rows(page, 'stacks'), text: await page.textContent('#summary'),
    boxes: await boxes(page),
  };
  await page.selectOption('#report', '5');

  await page.check('#icicle');
  facts.icicle = await boxes(page);
  await page.check('#tree');
  await page.locator('.leaf', {hasText: 'leaky'}).waitFor();
  facts.tree = await texts(page, '#branches :is(summary, .leaf)');
  facts.besideTree = await page.isVisible('#graph');
  await page.check('#icicle');
  await page.click('.stack >> nth=0');
  facts.frames = await texts(page, '.frames li');
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  facts.paper = [await paper()];
  await page.emulateMedia({colorScheme: 'dark'});
  facts.paper.push(await paper());
  await page.context().close();
  return facts;
}

const options = (page, id) => texts(page, `#${id} option`);

const sizeBars = (page) => page.locator('#sizes .size').evaluateAll((bars) => bars.map((bar) => ({
  number: Number(bar.dataset.class), blocks: Number(bar.dataset.blocks),
  title: bar.querySelector('title').textContent,
  height: bar.querySelector('.size-bar').height.baseVal.value,
})));

// A page that was given the sizes of some stacks' blocks.
async function exactSizes(browser) {
  const {page, facts} = await open(browser, url('exact.html'));
  facts.bars = await sizeBars(page);
  facts.key = await page.textContent('#sizes-key');
  await page.fill('#search', 'keeper');
  facts.found = await sizeBars(page);
  facts.foundKey = await page.textContent('#sizes-key');
  await page.context().close();
  return facts;
}

async function views(browser) {
  const {page, facts} = await open(browser, url('views.html'));
  facts.about = await page.textContent('#about');
  facts.end = await page.textContent('#curve-end');
  facts.axis = await texts(page, '#timeline text');
  facts.icicle = await page.isChecked('#icicle');
  facts.measures = await options(page, 'measure');
  facts.threads = await options(page, 'thread');
  facts.shown = {};
  for (const measure of ['live', 'blocks', 'allocated', 'allocations', 'temporary', 'lifetime',
    'peak']) {
    await page.selectOption('#measure', measure);
    facts.shown[measure] = {
      rows: await rows(page, 'stacks'), text: await page.textContent('#summary'),
      titles: await texts(page, '#stacks th'), boxes: await boxes(page),
      sizes: await sizeBars(page), sizesKey: await page.textContent('#sizes-key'),
      hasSizes: await page.isVisible('#sizes'), disabled: await page.isDisabled('#base'),
      report: await page.inputValue('#report'),
    };
  }
  await page.selectOption('#measure', 'live');
  await page.check('#inverted');
  facts.inverted = await boxes(page);
  await page.uncheck('#inverted');
  await page.selectOption('#thread', {label: 'worker'});
  facts.worker = {rows: await rows(page, 'stacks'), text: await page.textContent('#summary')};
  await page.click('.stack >> nth=0');
  facts.source = await texts(page, '.source');
  facts.here = await texts(page, '.source .here');
  await page.setViewportSize({width: 500, height: 900});
  facts.narrow = await page.evaluate(() => document.documentElement.scrollWidth);
  await page.context().close();
  return facts;
}

// As wide as a phone, and then as narrow as can be. Whether it scrolls sideways, and how many titles
// of columns are cut off.
async function narrow(browser, address) {
  const {page, facts} = await open(browser, address, {viewport: {width: 390, height: 844}});
  facts.sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  facts.cut = await page.locator('#stacks th').evaluateAll(
      (titles) => titles.filter((title) => title.scrollWidth > title.clientWidth).length);
  await page.setViewportSize({width: 320, height: 844});
  facts.narrower = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await page.setViewportSize({width: 1, height: 844});
  await page.waitForFunction(() => innerWidth === 1);
  await page.evaluate(() => new Promise(requestAnimationFrame));
  await page.context().close();
  return facts;
}

async function cut(browser) {
  const {page, facts} = await open(browser, url('cut.html'));
  facts.end = await page.textContent('#curve-end');
  await page.context().close();
  return facts;
}

async function hostile(browser, name) {
  const {page, facts} = await open(browser, url(name));
  facts.harmed = await page.evaluate(() => window.harmed === true);
  facts.boxes = await boxes(page);
  await page.context().close();
  return facts;
}

async function inSpeedscope(browser) {
  const {page, facts} = await open(browser, `file://${speedscope}/dist/release/index.html`);
  await page.setInputFiles('input[type=file]', `${directory}/scope.json`);
  await page.getByText('Sandwich').click();
  await page.getByText('leaky').waitFor();
  facts.text = await page.evaluate(() => document.body.innerText);
  await page.context().close();
  return facts;
}

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium', timeout: kPatience,
    args: [...root, '--enable-unsafe-swiftshader'],  // speedscope draws with WebGL
  });
  const facts = {
    graph: await flameGraph(browser), still: await withoutScripts(browser, 'graph.svg'),
    base: await difference(browser), report: await report(browser),
    views: await views(browser), cut: await cut(browser), exactSizes: await exactSizes(browser),
    narrow: {
      page: await narrow(browser, url('page.html')), views: await narrow(browser, url('views.html')),
      exact: await narrow(browser, url('exact.html')), cut: await narrow(browser, url('cut.html')),
      manual: await narrow(browser, `file://${path.resolve(__dirname, '../../../index.html')}`),
    },
    hostileSvg: await hostile(browser, 'hostile.svg'),
    hostilePage: await hostile(browser, 'hostile.html'),
    speedscope: await inSpeedscope(browser),
  };
  await browser.close();
  console.log(JSON.stringify(facts));
})();
