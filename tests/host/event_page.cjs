'use strict';
// event_page.cjs FILE: opens a page of an event log in Chromium. Prints what was to be
// seen, as JSON.

const {chromium} = require('playwright-core');
const kPatience = 300000;  // milliseconds; only ends a hang

async function see(page) {
  const facts = {problems: []};
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) facts.problems.push(message.text());
  });
  page.on('pageerror', (error) => facts.problems.push(error.message));
  await page.goto(`file://${process.argv[2]}`);
  facts.opened = [await page.inputValue('#measure'), await page.inputValue('#report')];
  facts.reports = await page.locator('#report option').allTextContents();
  facts.sizes = await page.textContent('#sizes-key');
  facts.bars = await page.locator('#sizes .size').evaluateAll((bars) => bars.reduce(
      (sum, bar) => sum + Number(bar.dataset.blocks), 0));
  const summary = () => page.textContent('#summary');
  const shown = async (measure) => {
    await page.selectOption('#measure', measure);
    return summary();
  };
  facts.peak = await summary();
  facts.live = await shown('live');
  facts.sizesAtEnd = await page.textContent('#sizes-key');
  facts.boxes = await page.locator('#graph .box').count();
  await page.setViewportSize({width: 390, height: 844});
  facts.wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await page.setViewportSize({width: 1, height: 844});
  await page.waitForFunction(() => innerWidth === 1);
  return facts;
}

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch(
      {executablePath: '/usr/bin/chromium', timeout: kPatience, args: root});
  const page = await browser.newPage();
  page.setDefaultTimeout(kPatience);
  console.log(JSON.stringify(await see(page)));
  await browser.close();
})();
