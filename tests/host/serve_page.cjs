'use strict';
// serve_page.cjs PLAIN TOKEN_BASE TOKEN PID: opens the page of two servers, the second of which asks
// for a token, and does what a user does with process PID, of which it expects what serve_test.cc
// has done with it. Prints "marked" when it has set a mark and then waits for a line of input.

const assert = require('node:assert');
const readline = require('node:readline');
const {drive, open, wider} = require('./browser.cjs');
const [plain, guarded, token, pid] = process.argv.slice(2);
const name = `live_target[${pid}]`;

// The row's first cell and the exact numbers of the others.
const row = (page, text) => page.locator('#rows tr').filter({hasText: text}).first();
const numbers = (page, text) => row(page, text).evaluate(
    (tr) => [...tr.cells].slice(1).map((cell) => Number(cell.title.replaceAll(',', ''))));
const clock = /at [0-2]\d:\d\d:\d\d GMT\+5:30$/;

async function watch(browser, input) {
  const {page, problems, foreign} = await open(browser, plain, {timezoneId: 'Asia/Kolkata'});
  // live, growth, peak, resident, blocks: 4096 are those of the output stream.
  const [live, , , , blocks] = await numbers(page, name);
  assert.deepEqual([live, blocks], [4096 + 1500, 3]);
  await page.keyboard.press('/');
  await page.keyboard.type('no such process');
  assert.equal(await page.textContent('#empty'), 'No row matches the search.');
  await page.keyboard.press('Escape');
  await page.click(`a[href="#${pid}"]`);
  assert.deepEqual((await numbers(page, 'site_kept')).slice(0, 2), [1500, 2]);
  assert.equal(await page.textContent('#title'), name);
  await page.locator('#moment-time', {hasText: 'at '}).waitFor();
  assert.match(await page.textContent('#told'), clock);
  assert.match(await page.textContent('#moment-time'), clock);
  await page.locator('#course-lines .opened').waitFor({state: 'attached'});
  const drawn = await page.locator('#course-lines').evaluate((svg) => {
    const first = (part) => Number(/M([0-9.]+)/.exec(
        svg.querySelector(part).getAttribute('d'))[1]);
    return {first: first('.line'), opened: first('.opened'),
      axes: [...svg.querySelectorAll('text')].map((text) => text.textContent)};
  });
  assert(drawn.first < drawn.opened, 'older than the page');
  assert.equal(drawn.axes[0], '0 bytes');
  assert.match(drawn.axes.at(-1), /s$/);
  await page.mouse.move(0, 0);  // over the curve its text tells of the point there
  await page.locator('#course-moment', {hasText: 'Recorded from the start, and seen'}).waitFor();
  await page.locator('#graph .box').filter({hasText: 'site_kept'}).waitFor();
  await page.check('#tree');
  assert.equal(
      await page.locator('#branches .leaf').filter({hasText: 'site_kept'}).textContent(),
      'site_kept 1.5 KiB (26.80%), 2 blocks');
  await row(page, 'site_kept').locator('td').nth(1).click();
  await page.locator('.more .stacks tbody tr').waitFor();
  const stack = await page.locator('.more .stacks tbody td').allTextContents();
  assert.deepEqual([stack[0], stack[2]], ['1.5 KiB', '2']);
  assert.match(stack[3], /^site_kept live_target\.c:\d+ < main :\d+$/);
  await row(page, 'site_kept').locator('button').click();
  await row(page, 'kept by runtimes').locator('button').click();
  await page.locator('.more .stacks tbody td', {hasText: '_IO_'}).first().waitFor();
  await row(page, 'kept by runtimes').locator('button').first().click();
  assert.equal(await page.locator('.more').count(), 0);
  assert.deepEqual(
      await page.locator('#tools a:visible').evaluateAll(
          (links) => links.map((link) => link.getAttribute('href'))),
      ['#', '#reports', `#${pid}/stacks`, `api/processes/${pid}/export/html`,
        `debug/pprof/heap?pid=${pid}`]);
  await page.keyboard.press('m');
  await page.locator('#empty', {hasText: 'Nothing changed since the mark.'}).waitFor();
  console.log('marked');
  await input.next();
  await row(page, '+700 B').waitFor();
  assert.equal(await page.locator('#rows tr').count(), 1, 'only what changed');
  assert.deepEqual((await numbers(page, 'site_kept')).slice(0, 2), [700, 1]);
  assert.equal(await page.textContent('#course-live'), 'live 100 bytes to 6.1 KiB');
  await page.keyboard.press('Escape');
  await row(page, name).waitFor();
  // Since the page was opened, with what was seen of the process among all of them.
  assert.equal(await page.locator('#rows .history').getAttribute('aria-label'),
               'live 5.5 KiB to 6.1 KiB');
  const [first, last] = await page.locator('#rows .history polyline').evaluate((line) => {
    const points = line.getAttribute('points').split(' ');
    return [points[0], points.at(-1)].map((point) => Number(point.split(',')[1]));
  });
  assert(first > last, 'upward');
  assert(await page.locator('#course').isHidden());
  assert(await page.locator('footer').isVisible());
  assert.deepEqual([problems, foreign], [[], []]);
}

async function snapshot(browser) {
  const {page, problems, foreign} =
      await open(browser, `${plain}/api/processes/${pid}/export/html`);
  assert.equal(await page.textContent('h1'), name);
  assert.equal(await page.locator('#graph .box').filter({hasText: 'site_kept'}).count(), 1);
  assert.equal(await page.evaluate(() => window.origin), 'null', 'a sandbox');
  assert.deepEqual([problems, foreign], [[], []]);
}

async function withToken(browser) {
  const {page, foreign} = await open(browser, guarded);
  await page.fill('#token', 'not the token, but long enough');
  await page.click('#ask button');
  await page.locator('#told', {hasText: 'this is not the token'}).waitFor();
  await page.fill('#token', token);
  await page.keyboard.press('Enter');
  assert.equal((await numbers(page, name))[0], 4096 + 2200);
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts do not see it');
  assert.deepEqual(foreign, []);
}

async function phone(browser) {
  const {page, problems, foreign} = await open(
      browser, plain, {viewport: {width: 390, height: 740}, hasTouch: true});
  await row(page, name).waitFor();
  assert(!await wider(page));
  assert(!await page.locator('footer').isVisible(), 'there are no keys to press');
  await page.click(`a[href="#${pid}"]`);
  await page.locator('#graph .box').first().waitFor();
  await row(page, 'site_kept').click();
  await page.locator('.more .stacks tbody tr').waitFor();
  assert(!await wider(page));
  await page.setViewportSize({width: 1, height: 740});
  await page.waitForFunction(() => innerWidth === 1);
  assert.deepEqual([problems, foreign], [[], []]);
}

drive(async (browser) => {
  const lines = readline.createInterface({input: process.stdin});
  await watch(browser, lines[Symbol.asyncIterator]());
  lines.close();
  await snapshot(browser);
  await withToken(browser);
  await phone(browser);
});
