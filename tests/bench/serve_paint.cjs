'use strict';
// serve_paint.cjs ADDRESS ROWS: opens the page of memlog serve five times in Chromium and prints, for
// each, the seconds from the start of the navigation until ROWS rows have been painted.

const {chromium} = require('playwright-core');
const [address, rows] = process.argv.slice(2);

async function paint(browser) {
  const page = await browser.newPage({viewport: {width: 1100, height: 700}});
  await page.addInitScript((wanted) => {
    const look = () => {
      if (document.querySelectorAll('#rows tr').length < wanted) return requestAnimationFrame(look);
      requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
    };
    requestAnimationFrame(look);
  }, Number(rows));
  await page.goto(address, {waitUntil: 'commit'});
  await page.waitForFunction(() => window.painted, null, {timeout: 300000});
  const milliseconds = await page.evaluate(() => window.painted);
  await page.close();
  return milliseconds / 1000;
}

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: root});
  for (let i = 0; i < 5; ++i) console.log((await paint(browser)).toFixed(3));
  await browser.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
