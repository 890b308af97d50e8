import assert from 'node:assert/strict';
import {
  formatExportRecord,
  parseExportRecord,
} from '../../../noded/instances/backup/export-record.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { GANETI_EXPORT, OUR_EXPORT } from '../../noded/support/export-samples.ts';
import { mutate } from '../mutate.ts';
import { assertRefusal, openPure, type Target } from '../target.ts';

const OURS = formatExportRecord(OUR_EXPORT);

/** Checks config.ini of an export: it is refused, or its record survives writing and reading. */
export function configIniTarget(parse: typeof parseExportRecord = parseExportRecord): Target {
  return { name: 'config-ini', generate, open: () => openPure((input) => check(input, parse)) };
}

function generate(random: SeededRandom): Buffer {
  const bytes = Buffer.from(random.pick([OURS, GANETI_EXPORT]));
  if (random.below(3) > 0) return mutate(bytes, random);
  // Moves lines, because some lines affect the next one.
  const lines = bytes.toString().split('\n');
  const at = random.below(lines.length);
  lines.splice(random.below(lines.length), 0, ...lines.splice(at, 1 + random.below(3)));
  return mutate(Buffer.from(lines.join('\n')), random);
}

function check(input: Buffer, parse: typeof parseExportRecord): void {
  let record: ReturnType<typeof parseExportRecord>;
  try {
    record = parse(input.toString());
  } catch (error) {
    assertRefusal(error, ['EXPORT_INVALID']);
    return;
  }
  for (const { dump, sizeBytes } of record.disks) {
    assert.ok(dump === null || !/[/\0]|^\.\.?$/.test(dump), 'a dump outside of its directory');
    assert.ok(Number.isSafeInteger(sizeBytes), `a disk of ${sizeBytes} bytes`);
  }
  assert.deepEqual(parse(formatExportRecord(record)), {
    ...record,
    // The file's times have a resolution of one second.
    createdAtMs: Math.floor(record.createdAtMs / 1000) * 1000,
  });
}
