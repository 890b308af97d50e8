import { chromium } from 'playwright-core';
import { readFileSync } from 'node:fs';
const url = readFileSync('/tmp/gnt-lead/web.out','utf8').match(/http:\S+/g)!.at(-1)!;
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.on('console', (m) => console.log('console:', m.type(), m.text()));
page.on('pageerror', (e) => console.log('pageerror', e.message));
await page.goto(url);
await page.waitForTimeout(1500);
await page.context().storageState({ path: '/tmp/gnt-lead/state.json' });
await page.screenshot({ path: '/tmp/gnt-lead/a.png' });
for (const [i, p] of process.argv.slice(2).entries()) {
  await page.goto(new URL(p, url).href); await page.waitForTimeout(1500);
  await page.screenshot({ path: `/tmp/gnt-lead/p${i}.png` });
}
await browser.close();
