'use strict';
// serve_paint.cjs ADDRESS ROWS: opens the page of memlog serve five times in Chromium and prints, for
// each, the seconds from the start of the navigation until the first rows have been painted, and
// until ROWS have.

const {chromium} = require('playwright-core');
const [address, rows] = process.argv.slice(2);

async function paint(browser) {
  const page = await browser.newPage({viewport: {width: 1100, height: 700}});
  await page.addInitScript((wanted) => {
    window.painted = [];
    // The frame in which they are seen is painted before the next task.
    const note = (which) => setTimeout(() => { window.painted[which] ??= performance.now(); });
    const look = () => {
      const rows = document.querySelectorAll('#rows tr').length;
      if (rows > 0) note(0);
      if (rows < wanted) return requestAnimationFrame(look);
      note(1);
    };
    requestAnimationFrame(look);
  }, Number(rows));
  await page.goto(address, {waitUntil: 'commit'});
  await page.waitForFunction(() => window.painted[1], null, {timeout: 300000});
  const milliseconds = await page.evaluate(() => window.painted);
  await page.close();
  return milliseconds.map((one) => (one / 1000).toFixed(3)).join(' ');
}

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: root});
  for (let i = 0; i < 5; ++i) console.log(await paint(browser));
  await browser.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
