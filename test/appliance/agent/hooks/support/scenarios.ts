import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HookDocument } from '#shared/contract/hooks.ts';

const FOLDER = fileURLToPath(new URL('../../../../../fixtures/yip', import.meta.url));

/**
 * The documents of one of fixtures/yip's scenarios: `<scenario>.yaml`, or `<scenario>.<file>.yaml`
 * in the order of their names.
 */
export function readScenario(scenario: string): HookDocument[] {
  const files = readdirSync(FOLDER).filter(
    (name) => name === `${scenario}.yaml` || name.startsWith(`${scenario}.`),
  );
  if (files.length === 0) throw new Error(`there is no scenario ${scenario}`);
  return files.sort().map((file) => ({
    source: 'cluster',
    name: file === `${scenario}.yaml` ? file : file.slice(scenario.length + 1),
    content: readFileSync(join(FOLDER, file)).toString('base64'),
  }));
}

export function listScenarios(): string[] {
  const names = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));
  return [...new Set(names.map((file) => file.split('.')[0] ?? ''))];
}
