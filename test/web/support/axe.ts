import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import type { AxeResults } from 'axe-core';

const script = await readFile(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

/** Checks a page for violations of accessibility: labels, roles, contrast. */
export async function assertAccessible(page: Page): Promise<void> {
  // The page's policy refuses a script element.
  await page.evaluate(script);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
    [],
    page.url(),
  );
}
