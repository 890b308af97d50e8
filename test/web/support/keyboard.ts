import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';

/** More than any page has controls. */
const MAX_STEPS = 120;

/** Presses Tab until a control has the focus, as a user without a mouse does. */
export async function tabTo(page: Page, control: Locator, key = 'Tab'): Promise<void> {
  await control.waitFor();
  for (let step = 0; step < MAX_STEPS; step += 1) {
    if (await control.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${String(control)} cannot be reached by ${key}`);
}
