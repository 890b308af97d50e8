import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fc } from '../../../lab/fast-check.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import {
  explainDifference,
  planComparison,
  planParts,
} from '../../../../appliance/agent/image/compare.ts';
import { ImageJail } from '../../../../appliance/agent/image/image-jail.ts';

const MIB = 1024 * 1024;
/** More than one part on any number of processors, the last one short. */
const IMAGE_BYTES = 300 * MIB + 512;
let directory = '';
let raw = '';
let qcow2 = '';

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-compare-'));
  raw = join(directory, 'image.raw');
  qcow2 = join(directory, 'image.qcow2');
  writeFileSync(raw, Buffer.alloc(MIB, 0x5a));
  truncateSync(raw, IMAGE_BYTES);
  execFileSync('qemu-img', ['convert', '-O', 'qcow2', raw, qcow2]);
});
after(() => rmSync(directory, { recursive: true }));

function disk(name: string): string {
  const path = join(directory, name);
  copyFileSync(raw, path);
  truncateSync(path, IMAGE_BYTES + MIB);
  // The tools run as another user.
  chmodSync(path, 0o666);
  return path;
}

async function compare(targetPath: string, format: 'raw' | 'qcow2'): Promise<void> {
  const path = format === 'raw' ? raw : qcow2;
  await using jail = await ImageJail.open(path, targetPath);
  const { script, args } = planComparison({ format, sizeBytes: IMAGE_BYTES, driver: 'file' });
  const difference = explainDifference(await jail.run('/bin/sh', ['-c', script, 'sh', ...args]));
  if (difference !== null) throw difference;
}

for (const format of ['raw', 'qcow2'] as const) {
  test(`finds a larger disk equal to its ${format} image`, async () => {
    await compare(disk(`equal-${format}`), format);
  });

  for (const offset of [0, 150 * MIB, IMAGE_BYTES - 1]) {
    test(`finds one wrong byte at ${offset} of a ${format} image`, async () => {
      const path = disk(`wrong-${format}-${offset}`);
      await using file = await open(path, 'r+');
      await file.write(Buffer.from([0xee]), 0, 1, offset);
      await assert.rejects(compare(path, format), (error) => {
        assert.ok(isAppError(error, 'IMAGE_DUMP'), String(error));
        const [, size, start] =
          / in the (\d+) bytes from offset (\d+): .*[Cc]ontent mismatch/.exec(error.message) ?? [];
        assert.ok(Number(start) <= offset && offset < Number(start) + Number(size), error.message);
        return true;
      });
    });
  }
}

test('parts cover every byte once, and are at most the requested number', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2 ** 45 }),
      fc.integer({ min: 1, max: 64 }),
      (size, count) => {
        const parts = planParts(size, count);
        let end = 0;
        for (const part of parts) {
          assert.equal(part.offset, end);
          assert.ok(part.size > 0);
          end += part.size;
        }
        assert.equal(end, size);
        assert.ok(parts.length <= count);
      },
    ),
  );
});
