'use strict';
// serve_page.cjs PLAIN TOKEN_BASE TOKEN PID: opens the page of two servers in Chromium, the second
// of which asks for a token, and does what a user does with process PID. Prints "marked" when it
// has set a mark and then waits for a line of input. Prints as JSON, in the last line, what was to
// be seen.

const readline = require('node:readline');
const {chromium} = require('playwright-core');
const [plain, guarded, token, pid] = process.argv.slice(2);
const kPatience = 300000;  // milliseconds; only ends a hang

async function open(browser, address, options = {}) {
  const context = await browser.newContext(
      {viewport: {width: 1100, height: 700}, timezoneId: 'Asia/Kolkata', ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(kPatience);
  const facts = {problems: [], foreign: []};
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) facts.problems.push(message.text());
  });
  page.on('pageerror', (error) => facts.problems.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(address)) facts.foreign.push(request.url());
  });
  await page.goto(address, {waitUntil: 'domcontentloaded'});
  return {page, facts};
}

// The row's first cell and the exact numbers of the others.
const row = (page, text) => page.locator('#rows tr').filter({hasText: text}).first();
const numbers = (page, text) => row(page, text).evaluate(
    (tr) => [...tr.cells].slice(1).map((cell) => Number(cell.title.replaceAll(',', ''))));

async function watch(browser, input) {
  const {page, facts} = await open(browser, plain);
  facts.process = await numbers(page, `live_target[${pid}]`);
  await page.keyboard.press('/');
  await page.keyboard.type('no such process');
  facts.none = await page.textContent('#empty');
  await page.keyboard.press('Escape');
  await page.click(`a[href="#${pid}"]`);
  facts.kept = await numbers(page, 'site_kept');
  facts.title = await page.textContent('#title');
  await page.locator('#moment-time', {hasText: 'at '}).waitFor();
  facts.clocks = [await page.textContent('#told'), await page.textContent('#moment-time')];
  await page.locator('#course-lines .opened').waitFor({state: 'attached'});
  facts.drawn = await page.locator('#course-lines').evaluate((svg) => {
    const first = (name) => Number(/M([0-9.]+)/.exec(
        svg.querySelector(name).getAttribute('d'))[1]);
    return {first: first('.line'), opened: first('.opened'),
      axes: [...svg.querySelectorAll('text')].map((text) => text.textContent)};
  });
  await page.mouse.move(0, 0);  // over the curve its text tells of the point there
  await page.locator('#course-moment', {hasText: 'Recorded from the start, and seen'}).waitFor();
  await page.locator('#graph .box').filter({hasText: 'site_kept'}).waitFor();
  await page.check('#tree');
  facts.tree = await page.locator('#branches .leaf').filter({hasText: 'site_kept'}).textContent();
  await row(page, 'site_kept').locator('td').nth(1).click();
  await page.locator('.more .stacks tbody tr').waitFor();
  facts.opened = await page.locator('.more .stacks tbody td').allTextContents();
  await row(page, 'site_kept').locator('button').click();
  await row(page, 'kept by runtimes').locator('button').click();
  await page.locator('.more .stacks tbody td', {hasText: '_IO_'}).first().waitFor();
  await row(page, 'kept by runtimes').locator('button').first().click();
  facts.closed = await page.locator('.more').count();
  facts.links = await page.locator('#tools a:visible').evaluateAll(
      (links) => links.map((link) => link.getAttribute('href')));
  await page.keyboard.press('m');
  await page.locator('#empty', {hasText: 'Nothing changed since the mark.'}).waitFor();
  console.log('marked');
  await input.next();
  await row(page, '+700 B').waitFor();
  facts.since = await page.locator('#rows tr').count();
  facts.changed = await numbers(page, 'site_kept');
  facts.course = await page.textContent('#course-live');
  await page.keyboard.press('Escape');
  await row(page, `live_target[${pid}]`).waitFor();
  facts.small = await page.locator('#rows .history').getAttribute('aria-label');
  facts.heights = await page.locator('#rows .history polyline').evaluate((line) => {
    const points = line.getAttribute('points').split(' ');
    return [points[0], points.at(-1)].map((point) => Number(point.split(',')[1]));
  });
  facts.hidden = await page.locator('#course').isHidden();
  facts.keys = await page.locator('footer').isVisible();
  return facts;
}

async function snapshot(browser) {
  const {page, facts} = await open(browser, `${plain}/api/processes/${pid}/export/html`);
  facts.heading = await page.textContent('h1');
  facts.drawn = await page.locator('#graph .box').filter({hasText: 'site_kept'}).count();
  facts.origin = await page.evaluate(() => window.origin);
  return facts;
}

async function withToken(browser) {
  const {page, facts} = await open(browser, guarded);
  await page.fill('#token', 'not the token, but long enough');
  await page.click('#ask button');
  await page.locator('#told', {hasText: 'this is not the token'}).waitFor();
  await page.fill('#token', token);
  await page.keyboard.press('Enter');
  facts.process = await numbers(page, `live_target[${pid}]`);
  facts.cookies = await page.evaluate(() => document.cookie);
  return facts;
}

async function phone(browser) {
  const {page, facts} = await open(
      browser, plain, {viewport: {width: 390, height: 740}, hasTouch: true});
  const wider = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await row(page, `live_target[${pid}]`).waitFor();
  facts.wider = [await wider()];
  facts.keys = await page.locator('footer').isVisible();
  await page.click(`a[href="#${pid}"]`);
  await page.locator('#graph .box').first().waitFor();
  await row(page, 'site_kept').click();
  await page.locator('.more .stacks tbody tr').waitFor();
  facts.wider.push(await wider());
  await page.setViewportSize({width: 1, height: 740});
  await page.waitForFunction(() => innerWidth === 1);
  return facts;
}

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const lines = readline.createInterface({input: process.stdin});
  const browser = await chromium.launch(
      {executablePath: '/usr/bin/chromium', timeout: kPatience, args: root});
  const facts = {watch: await watch(browser, lines[Symbol.asyncIterator]()),
                 snapshot: await snapshot(browser), token: await withToken(browser),
                 phone: await phone(browser)};
  await browser.close();
  lines.close();
  console.log(JSON.stringify(facts));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
