import { chromium } from 'playwright-core';
import { readFileSync } from 'node:fs';
const url = readFileSync('/tmp/gnt-lead/web.out','utf8').match(/http:\S+/g)!.at(-1)!;
const w = Number(process.env['W'] ?? 1280), h = Number(process.env['H'] ?? 800);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
const context = await browser.newContext({ viewport: { width: w, height: h }, storageState: '/tmp/gnt-lead/state.json', colorScheme: (process.env['C'] as 'dark') ?? 'light' });
const page = await context.newPage();
page.on('console', (m) => console.log('console:', m.type(), m.text()));
page.on('pageerror', (e) => console.log('pageerror', e.message));
for (const [i, p] of process.argv.slice(2).entries()) {
  await page.goto(new URL(p, url).href); await page.waitForTimeout(Number(process.env['T'] ?? 1500));
  await page.screenshot({ path: `/tmp/gnt-lead/p${i}.png` });
}
await browser.close();
