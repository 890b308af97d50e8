import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, type TestContext } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';
/** Only a hang reaches it. */
const LIMIT_MS = 60_000;

/** The reason to skip a test that needs a browser; false if there is one. */
export const noBrowser = existsSync(CHROMIUM)
  ? false
  : 'Chromium is missing: run sh scripts/host-packages.sh';

let browser: Promise<Browser> | undefined;
let cachingBrowser: Promise<Browser> | undefined;
after(async () => {
  await (await browser)?.close();
  await (await cachingBrowser)?.close();
});

interface ProfileOptions extends BrowserContextOptions {
  /** The back button shows pages as they were, as in a browser of a user. */
  readonly hasBackForwardCache?: boolean;
}

/**
 * Opens an address in a new profile of Chromium. The test fails if a script of the page throws or
 * the page breaks its content security policy.
 */
export async function openInBrowser(
  t: Pick<TestContext, 'after'>,
  address: string,
  { hasBackForwardCache = false, ...options }: ProfileOptions = {},
): Promise<Page> {
  const launched = hasBackForwardCache
    ? (cachingBrowser ??= chromium.launch({
        executablePath: CHROMIUM,
        ignoreDefaultArgs: ['--disable-back-forward-cache'],
      }))
    : (browser ??= chromium.launch({ executablePath: CHROMIUM }));
  const profile = await (
    await launched
  ).newContext({
    viewport: { width: 1280, height: 800 },
    // The loopback page uses http; the permanent page has a certificate of its own.
    ignoreHTTPSErrors: true,
    ...options,
  });
  profile.setDefaultTimeout(LIMIT_MS);
  const problems: string[] = [];
  profile.on('weberror', (error) => problems.push(String(error.error().stack)));
  profile.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy/.test(message.text()))
      problems.push(message.text());
  });
  t.after(async () => {
    await profile.close();
    assert.deepEqual(problems, []);
  });
  const page = await profile.newPage();
  await page.goto(address);
  return page;
}
