import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { hasOwnNetwork, runInOwnNetwork } from '../lab/own-network.ts';
import { type OtherDisks, putDisksOn } from './support/disks-on.ts';
import { addHostOs } from './support/host-os.ts';
import { followTranscript } from './support/transcript.ts';

/**
 * The commands of an operator's first hour and their output, in fixtures/first-hour.txt.
 * GNT_UPDATE_FIRST_HOUR=1 rewrites the file; read the diff before you commit it. The host writes
 * the image, and its guest only halts: other tests cover the behaviour of guests.
 */
const file = join(import.meta.dirname, '../../fixtures/first-hour.txt');
const KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpcnN0IGhvdXIgZmlyc3QgaG91ciBmaXJzdCBob3Vy me@here';
if (!hasOwnNetwork()) {
  test('the commands of a first hour print the recorded output, in a separate network namespace', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else {
  describe('a first hour', firstHourTests);
}

function firstHourTests(): void {
  let lab: Lab;
  let btrfs: OtherDisks;

  before(async () => {
    // The user's own SSH keys and defaults must not change the output.
    process.env['HOME'] = '/nonexistent';
    lab = await createLab('gnt-hour');
    // dnsmasq's user opens its files by their paths.
    await chmod(lab.paths.root, 0o755);
    btrfs = await putDisksOn('btrfs', lab);
    // A boot sector: `hlt` in a loop.
    const image = Buffer.alloc(MIB);
    image.set([0xf4, 0xeb, 0xfd]);
    image.set([0x55, 0xaa], 510);
    await writeFile(join(lab.paths.root, 'small.raw'), image);
    await writeFile(join(lab.paths.root, 'id.pub'), `${KEY}\n`);
    await addHostOs(lab, 'plain', {
      export: 'cat "$EXPORT_DEVICE"',
      import: 'cat >"$IMPORT_DEVICE"',
    });
    await lab.startNode();
  });

  after(async () => {
    for (const name of ['web1', 'web2'])
      await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name]);
    await lab.stopNode();
    const leftovers = await lab.findLeftovers();
    await lab.dispose();
    await btrfs.release();
    assert.deepEqual(leftovers, []);
  });

  test('the commands of a first hour print the recorded output', async (t) => {
    const isRenewed = process.env['GNT_UPDATE_FIRST_HOUR'] !== undefined;
    await followTranscript(t, lab, { file, isRenewed, normalise });
  });
}

/**
 * Replaces values that depend on the host, on random numbers and on speed.
 */
function normalise(text: string): string {
  return text
    .replaceAll(/\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/g, 'UUID')
    .replaceAll(/\b[\da-f]{2}(?::[\da-f]{2}){5}\b/g, 'MAC')
    .replaceAll(/\b[\da-f]{64}\b/g, 'SHA256')
    .replaceAll(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d/g, 'YYYY-MM-DD hh:mm:ss')
    .replaceAll(/\b\d+\.\d s\b/g, 'N s')
    .replaceAll(/\b\d+ ms\b/g, 'N ms')
    .replaceAll(/-(?:amd64|arm64)\./g, '-MACHINE.')
    .replaceAll(/^( +accelerator|Serial number| {2}process): .*$/gm, '$1: …')
    .replaceAll(/^(?:ok|warning|error) +(\S+): .*$/gm, 'STATE   $1: …')
    .replaceAll(/^STATE {3}(?:volume-group|thin-pool): …\n/gm, '')
    .replaceAll(/^ {8}hint: .*\n/gm, '')
    .replaceAll(/^hh:mm:ss (?:ex|im)porting disks: \d+ %.*\n/gm, '')
    .replaceAll(/\b1[789]\d{11}(?:\.\d+)?\b/g, 'MILLISECONDS')
    .replaceAll(/\d+ (error|warning)\(s\)/g, 'N $1(s)');
}
