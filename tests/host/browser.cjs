'use strict';
// What the scripts share that show memlog's page in Chromium.

const {chromium} = require('playwright-core');
const kPatience = 300000;  // milliseconds; only ends a hang

// A page in a window of its own, and what it complains of.
exports.open = async (browser, address, options = {}) => {
  const context = await browser.newContext({viewport: {width: 1100, height: 700}, ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(kPatience);
  const problems = [];
  const foreign = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(address)) foreign.push(request.url());
  });
  await page.goto(address, {waitUntil: 'domcontentloaded'});
  return {page, problems, foreign};
};

exports.wider = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

// Ends with status 1 when something is not as `act` expects it.
exports.drive = async (act) => {
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  try {
    const browser = await chromium.launch(
        {executablePath: '/usr/bin/chromium', timeout: kPatience, args: root});
    await act(browser);
    await browser.close();
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
};
