import { isErrorCode } from '#shared/errors/codes.ts';
import type { Contents } from '../content-keys.ts';

/** A metric as the code registers it. */
const METRIC = /['"](gnt_[a-z_]+)['"]/g;
const PRODUCT = /^(?:noded|metad)\/.*\.ts$/;

/** Finds metrics of the code without an entry in the reference. */
export function findUndocumentedMetrics(contents: Contents): readonly string[] {
  const reference = contents.get('docs/reference/metrics.md') ?? '';
  return [...contents].flatMap(([path, text]) =>
    PRODUCT.test(path) && text.includes('prom-client')
      ? [...text.matchAll(METRIC)].flatMap(([, name = '']) =>
          reference.includes(`\`${name}\``) ? [] : [`${path}: the metric ${name} has no entry`],
        )
      : [],
  );
}

/** Finds error codes and metrics in documents that do not exist. */
export function findUnknownNames(contents: Contents): readonly string[] {
  const metrics = contents.get('docs/reference/metrics.md') ?? '';
  return [...contents].flatMap(([path, text]) => {
    if (!path.endsWith('.md') || path.startsWith('fixtures/')) return [];
    const codes = [...text.matchAll(/error\[([A-Z_]+)\]/g)].map(([, code = '']) => code);
    const names = [...text.matchAll(/\bgnt_[a-z]+_[a-z_]+\b/g)].map(([name]) => name);
    return [
      ...codes
        .filter((code) => code !== 'CODE' && !isErrorCode(code))
        .map((code) => `${path}: the error code ${code} does not exist`),
      ...names
        .filter((name) => !metrics.includes(`\`${name.replace(/_(?:bucket|sum|count)$/, '')}\``))
        .map((name) => `${path}: the metric ${name} does not exist`),
    ];
  });
}
