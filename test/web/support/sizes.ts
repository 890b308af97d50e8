import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { assertAccessible } from './axe.ts';

const USUAL = { width: 1280, height: 800 };
const SIZES = [
  { width: 360, height: 740 },
  { width: 3840, height: 2160 },
];
/** Texts of headings, controls and commands beyond an edge. What scrolls by itself is not lost. */
const LOST = `[...document.querySelectorAll('a, button, input, select, textarea, summary, h1, h2, code')]
  .filter((each) => each.closest('.unseen, .scroll, .terminal, .skip') === null)
  .filter((each) => {
    const { left, right, width } = each.getBoundingClientRect();
    return width > 0 && (left < -1 || right > innerWidth + 1);
  })
  .map((each) => each.outerHTML.slice(0, 100))`;

/**
 * Checks both colours for violations of accessibility, and a phone and a 4K screen for lost parts.
 */
export async function assertWellShown(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page);
  }
  for (const size of SIZES) {
    await page.setViewportSize(size);
    const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
    const at = `${page.url()} at ${size.width} pixels`;
    assert.ok(width <= size.width, `${at} is ${width} pixels wide`);
    assert.deepEqual(await page.evaluate(LOST), [], at);
  }
  await page.setViewportSize(USUAL);
}
