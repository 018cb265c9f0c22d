'use strict';
// serve_reports.cjs ADDRESS PID: opens the page of a server that serves process PID and two directories
// of reports, in Chromium, and does what a user does with the reports. Prints what was to be seen, as
// JSON.

const {chromium} = require('playwright-core');
const [address, pid] = process.argv.slice(2);
const kPatience = 300000;  // milliseconds; only ends a hang

const row = (page) => page.locator('#rows tr').filter({hasText: 'site_kept'}).first();
const numbers = (page) => row(page).evaluate(
    (tr) => [...tr.cells].slice(1).map((cell) => cell.title.replaceAll(',', '')));

async function see(page) {
  const facts = {problems: []};
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) facts.problems.push(message.text());
  });
  page.on('pageerror', (error) => facts.problems.push(error.message));
  await page.goto(address, {waitUntil: 'domcontentloaded'});
  await page.click('#to-reports');
  await page.locator('#rows tr').nth(1).waitFor();
  facts.paths = await page.locator('#rows td').evaluateAll(
      (cells) => cells.map((cell) => cell.firstChild.textContent));
  await page.locator('#rows a', {hasText: 'what grows'}).first().click();
  await row(page).waitFor();
  facts.grows = await page.locator('button.stack').allTextContents();
  facts.course = await row(page).locator('td').last().textContent();
  facts.points = await row(page).locator('polyline').evaluate((line) => line.points.length);
  await row(page).locator('button').click();
  facts.frames = await row(page).locator('li').nth(1).evaluate((item) => item.firstChild.textContent);
  await page.fill('#f-include', 'nothing');
  await page.keyboard.press('Enter');
  await page.locator('#empty', {hasText: 'No stack grows.'}).waitFor();
  facts.none = await page.textContent('#empty');
  facts.link = page.url();
  await page.goBack();
  await row(page).waitFor();
  await page.goto(`${address}/#reports/1/stacks`);
  await page.locator('#title', {hasText: 'sum of the changes'}).waitFor();
  await row(page).locator('td').nth(3).waitFor();
  facts.sum = await numbers(page);
  await page.goto(`${address}/#diff?a=reports/2&b=reports/1`);
  await page.locator('#titles', {hasText: 'change'}).waitFor();
  await row(page).locator('td').nth(4).waitFor();
  facts.compared = await numbers(page);
  await page.goto(`${address}/#${pid}/stacks`);
  await page.locator('#title', {hasText: `Process ${pid}: stacks`}).waitFor();
  await page.locator('#titles', {hasText: 'live'}).waitFor();
  await row(page).waitFor();
  facts.stacks = await numbers(page);
  return facts;
}

async function act(page, facts) {
  await page.click('#back');
  await page.locator('#attach').waitFor();
  await page.fill('#pid', 'x');
  await page.click('#attach');
  await page.locator('#done', {hasText: 'give'}).waitFor();
  facts.bad = await page.textContent('#done');
  await page.click(`a[href="#${pid}"]`);
  await page.fill('#label', 'by hand & more');
  await page.click('#report');
  await page.locator('#done', {hasText: 'memlog'}).waitFor();
  facts.done = await page.textContent('#done');
  await page.fill('#after', '100ms');
  await page.click('#expire');
  console.log('watching');
  await page.locator('#done', {hasText: 'watched'}).waitFor();
  facts.expired = await page.textContent('#done');
  console.log('watched');
  await page.setViewportSize({width: 390, height: 700});
  const wider = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  facts.wider = [await wider()];
  for (const [hash, title] of [['reports', 'Reports'], ['reports/1/leaks', 'what grows'],
    ['diff?a=reports/2&b=reports/1', 'compared with'], [`${pid}/stacks`, ': stacks']]) {
    await page.goto(`${address}/#${hash}`);
    await page.locator('#title', {hasText: title}).waitFor();
    await page.locator('#rows tr').first().waitFor();
    facts.wider.push(await wider());
    if (title !== 'what grows') continue;
    facts.leaks = await page.locator('#titles th, #rows tr:first-child td').allTextContents();
  }
}

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch(
      {executablePath: '/usr/bin/chromium', timeout: kPatience, args: root});
  const page = await (await browser.newContext({viewport: {width: 1100, height: 700}})).newPage();
  page.setDefaultTimeout(kPatience);
  const facts = await see(page);
  await act(page, facts);
  await browser.close();
  console.log(JSON.stringify(facts));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
