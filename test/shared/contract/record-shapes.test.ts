import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { clusterRecord, osSettings } from '#shared/contract/api.ts';
import { bootEnv, bootParam, bootTemplate } from '#shared/contract/boot-env.ts';
import { instanceRecord } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { networkRecord } from '#shared/contract/network.ts';
import { profileRecord } from '#shared/contract/profile.ts';
import { STORE_SCHEMA } from '#shared/store/encode.ts';

/**
 * Fields of records by the store's version. A program drops unknown fields at its first change of a
 * record, so the version alone must keep an older program from the store.
 */
const SHAPES = join(import.meta.dirname, '../../../fixtures/upgrade/records.json');
const RECORDS = {
  ...{ instanceRecord, jobRecord, clusterRecord, osSettings, networkRecord, profileRecord },
  ...{ bootEnv, bootTemplate, bootParam },
};
const node = z.looseObject({
  properties: z.record(z.string(), z.unknown()).optional(),
  additionalProperties: z.unknown().optional(),
  items: z.unknown().optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  allOf: z.array(z.unknown()).optional(),
});

/** Collects the names of all fields that a JSON schema allows, with their place. */
function namesIn(schema: unknown, place: string, found: Set<string>): Set<string> {
  const parsed = node.safeParse(schema).data;
  if (parsed === undefined) return found;
  const { properties = {}, additionalProperties, items, anyOf, oneOf, allOf } = parsed;
  for (const [name, inner] of Object.entries(properties)) {
    found.add(`${place}.${name}`);
    namesIn(inner, `${place}.${name}`, found);
  }
  for (const inner of [items, additionalProperties]) namesIn(inner, `${place}[]`, found);
  for (const inner of [...(anyOf ?? []), ...(oneOf ?? []), ...(allOf ?? [])])
    namesIn(inner, place, found);
  return found;
}

test('records have what their version says, and no more', () => {
  const shapes = z.record(z.string(), z.array(z.string())).parse(JSON.parse(readFileSync(SHAPES, 'utf8'))); // prettier-ignore
  const names = Object.entries(RECORDS).flatMap(([name, schema]) => [
    ...namesIn(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline' }), name, new Set()), // prettier-ignore
  ]);
  assert.deepEqual(
    names.sort(),
    shapes[STORE_SCHEMA],
    'give STORE_SCHEMA the next number, and that an entry in fixtures/upgrade; one that is in no release yet is changed',
  );
});
