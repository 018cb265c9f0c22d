'use strict';
// shoot.cjs PAGE DIRECTORY: the timeline and the functions of a page that memlog export -f html has
// made, in light and in dark.
const {chromium} = require('playwright-core');
const [page, directory] = process.argv.slice(2);

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: root});
  for (const colorScheme of ['light', 'dark']) {
    const tab = await browser.newPage({viewport: {width: 1200, height: 1000}, colorScheme});
    await tab.goto(`file://${page}`);
    await tab.selectOption('#base', {label: 'report 3 of 7, round-1'});
    const below = await tab.getByRole('heading', {name: 'Stacks'}).boundingBox();
    await tab.screenshot({path: `${directory}/page-${colorScheme}.png`,
                          clip: {x: 0, y: 0, width: 1200, height: Math.floor(below.y) - 20}});
  }
  await browser.close();
})();
