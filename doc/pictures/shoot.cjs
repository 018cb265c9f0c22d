'use strict';
// shoot.cjs PAGE DIRECTORY: pictures of a page that memlog export -f html has made.
const {chromium} = require('playwright-core');
const [page, directory] = process.argv.slice(2);

(async () => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: root});
  for (const colorScheme of ['light', 'dark']) {
    const tab = await browser.newPage({viewport: {width: 1000, height: 1250}, colorScheme});
    await tab.goto(`file://${page}`);
    await tab.selectOption('#base', {label: 'report 3 of 7, round-1'});
    await tab.screenshot({path: `${directory}/page-${colorScheme}.png`});
  }
  await browser.close();
})();
