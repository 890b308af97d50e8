import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OsInfo, OsVariantInfo } from '#shared/contract/api.ts';
import { isOffered, listVariants } from '#shared/contract/os-variants.ts';
import { sampleOs } from '../../cluster-cli/support/samples.ts';

const variantInfo = (fields: Partial<OsVariantInfo>): OsVariantInfo => ({
  trust: { state: 'untrusted', digest: null, trustedAtMs: null },
  ...{ hidden: false, blacklisted: false, safeInstall: 'optional', defaults: {} },
  ...fields,
});
const offered = (fields: Partial<OsInfo>): readonly string[] =>
  listVariants(sampleOs(fields))
    .filter(isOffered)
    .map(({ listed }) => listed);

test('a variant that is hidden or blacklisted by its own name is not offered, the others are', () => {
  assert.deepEqual(offered({}), ['debian+bookworm', 'debian+trixie']);
  const hidden = { trixie: variantInfo({ hidden: true }) };
  assert.deepEqual(offered({ variantSettings: hidden }), ['debian+bookworm']);
  const blacklisted = { bookworm: variantInfo({ blacklisted: true }) };
  assert.deepEqual(offered({ variantSettings: blacklisted }), ['debian+trixie']);
  assert.deepEqual(offered({ hidden: true, variantSettings: { trixie: variantInfo({}) } }), []);
});

test('a variant that is trusted by its own name is listed as trusted, and it alone', () => {
  const trust = { state: 'trusted', digest: 'a', trustedAtMs: 1 } as const;
  const listed = listVariants(sampleOs({ variantSettings: { trixie: variantInfo({ trust }) } }));
  assert.deepEqual(
    listed.map(({ trusted }) => trusted),
    [false, true],
  );
});
