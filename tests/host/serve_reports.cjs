'use strict';
// serve_reports.cjs ADDRESS PID DIRECTORY...: opens the page of a server that serves process PID and
// two directories of reports, and does what a user does with the reports, of which it expects what
// serve_test.cc has made.

const assert = require('node:assert');
const {drive, open, wider} = require('./browser.cjs');
const [address, pid, ...directories] = process.argv.slice(2);

const row = (page) => page.locator('#rows tr').filter({hasText: 'site_kept'}).first();
const numbers = (page) => row(page).evaluate(
    (tr) => [...tr.cells].slice(1).map((cell) => cell.title.replaceAll(',', '')));

async function see(page) {
  await page.click('#to-reports');
  await page.locator('#rows tr').nth(1).waitFor();
  assert.deepEqual(
      await page.locator('#rows td').evaluateAll(
          (cells) => cells.map((cell) => cell.firstChild.textContent)),
      directories.map((directory, i) => `${i + 1}: ${directory}`));
  await page.locator('#rows a', {hasText: 'what grows'}).first().click();
  await row(page).waitFor();
  // Not the first report, which has all of the start.
  assert.match((await page.locator('button.stack').allTextContents())[0],
               /^site_kept live_target\.c:\d+ < main :\d+ < __libc_start_call_main/);
  assert.equal(await row(page).locator('td').last().textContent(), 'grows');
  assert.equal(await row(page).locator('polyline').evaluate((line) => line.points.length), 7,
               'states, as a line');
  await row(page).locator('button').click();
  assert.equal(
      await row(page).locator('li').nth(1).evaluate((item) => item.firstChild.textContent), 'main');
  await page.fill('#f-include', 'nothing');
  await page.keyboard.press('Enter');
  await page.locator('#empty', {hasText: 'No stack grows.'}).waitFor();
  assert.match(page.url(), /#reports\/1\/leaks\?include=nothing/);
  await page.goBack();
  await row(page).waitFor();
  await page.goto(`${address}/#reports/1/stacks`);
  await page.locator('#title', {hasText: 'sum of the changes'}).waitFor();
  await row(page).locator('td').nth(3).waitFor();
  assert.deepEqual(await numbers(page), ['37500', '10', '10']);
  await page.goto(`${address}/#diff?a=reports/2&b=reports/1`);
  await page.locator('#titles', {hasText: 'change'}).waitFor();
  await row(page).locator('td').nth(4).waitFor();
  // A, B, the change and blocks of site_kept: 1500 and 1000 bytes in the first report.
  assert.deepEqual(await numbers(page), ['2500', '37500', '35000', '7']);
  await page.goto(`${address}/#${pid}/stacks`);
  await page.locator('#title', {hasText: `Process ${pid}: stacks`}).waitFor();
  await page.locator('#titles', {hasText: 'live'}).waitFor();
  await row(page).waitFor();
  assert.deepEqual(await numbers(page), ['37500', '10']);
}

async function act(page) {
  const done = page.locator('#done');
  await page.click('#back');
  await page.locator('#attach').waitFor();
  await page.fill('#pid', 'x');
  await page.click('#attach');
  await page.locator('#done', {hasText: 'give'}).waitFor();
  assert.equal(await done.textContent(), 'give the pid of a process');
  await page.click(`a[href="#${pid}"]`);
  await page.fill('#label', 'by hand & more');
  await page.click('#report');
  await page.locator('#done', {hasText: `live_target-${pid}-9.memlog`}).waitFor();
  await page.fill('#after', '100ms');
  await page.click('#expire');
  console.log('watching');
  await page.locator('#done', {hasText: 'watched'}).waitFor();
  assert.match(await done.textContent(), /new blocks that expired and are not freed\n/);
  assert.match(await done.textContent(), / {2}site_kept {2}live_target.c:/);
  console.log('watched');
  await page.setViewportSize({width: 390, height: 700});
  assert(!await wider(page));
  for (const [hash, title] of [['reports', 'Reports'], ['reports/1/leaks', 'what grows'],
    ['diff?a=reports/2&b=reports/1', 'compared with'], [`${pid}/stacks`, ': stacks']]) {
    await page.goto(`${address}/#${hash}`);
    await page.locator('#title', {hasText: title}).waitFor();
    await page.locator('#rows tr').first().waitFor();
    assert(!await wider(page), title);
    if (title !== 'what grows') continue;
    const leaks = await page.locator('#titles th, #rows tr:first-child td').allTextContents();
    assert(leaks.length >= 12);
    assert.deepEqual([leaks[2], leaks[8]], ['first', '4.4 KiB']);
  }
}

drive(async (browser) => {
  const {page, problems} = await open(browser, address);
  await see(page);
  await act(page);
  assert.deepEqual(problems, []);
});
