import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createGrowStage, keptContent } from '../../../../appliance/agent/disks/grow.ts';

/** A 64 MiB disk, a file. Its partitions of 8 MiB each are files too. */
let directory = '';
const at = { sysBlock: '', dev: '' };
const plan = { disks: [{ serial: 'disk-0', sizeBytes: 64 * MIB }] } as unknown as InstallPlan; // the only member that is read
const shell = (script: string): string =>
  execFileSync('bash', ['-euc', script], { cwd: directory, encoding: 'utf8' });

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-grow-'));
  at.sysBlock = join(directory, 'sys');
  at.dev = join(directory, 'dev');
  mkdirSync(at.dev);
  mkdirSync(join(at.sysBlock, 'vda'), { recursive: true });
  writeFileSync(join(at.sysBlock, 'vda/serial'), 'disk-0\n');
  writeFileSync(join(at.sysBlock, 'vda/size'), `${(64 * MIB) / 512}\n`);
  for (const number of [1, 2]) {
    const part = join(at.sysBlock, `vda/vda${number}`);
    mkdirSync(part);
    writeFileSync(join(part, 'partition'), `${number}\n`);
    writeFileSync(join(part, 'start'), `${2048 + (number - 1) * 16_384}\n`);
    writeFileSync(join(part, 'size'), '16384\n');
  }
  for (const name of ['vda', 'vda1', 'vda2'])
    symlinkSync(join(directory, name), join(at.dev, name));
});
after(() => rmSync(directory, { recursive: true }));

/** @returns the stage's summary, and the sectors of the last partition afterwards */
async function grow(makeLast: string): Promise<readonly [string, number]> {
  shell(`rm -f vda*; truncate -s 64M vda; truncate -s 8M vda1 vda2
    printf 'label: gpt\\nstart=2048, size=16384\\nstart=18432, size=16384\\n' | sfdisk -q vda
    mke2fs -q -t ext4 vda1; ${makeLast} >/dev/null`);
  const reporter = { log: () => undefined, progress: () => undefined };
  const summary = await createGrowStage(plan, at).run(reporter);
  return [summary, Number(/start= *18432, size= *(\d+)/.exec(shell('sfdisk -d vda'))?.[1])];
}

test('a last partition with ext4 grows, and a last partition with swap or unknown content does not', async () => {
  const [grown, sectors] = await grow('mke2fs -q -t ext4 vda2');
  assert.match(grown, /^partition 2: .* ext4 grown$/);
  assert.ok(sectors > 100_000, `${sectors} sectors`);
  assert.deepEqual(await grow('mkswap vda2'), [
    'not grown: the last partition (2) holds swap',
    16_384,
  ]);
  assert.deepEqual(await grow('true'), [
    'not grown: the last partition (2) holds no known file system',
    16_384,
  ]);
});

test('LVM and recovery partitions do not grow', () => {
  const kept = (tags: Record<string, string>): string | null =>
    keptContent(new Map(Object.entries(tags)));
  assert.match(kept({ TYPE: 'LVM2_member' }) ?? '', /^LVM: .*pvresize/);
  assert.equal(kept({ TYPE: 'ntfs', PART_ENTRY_TYPE: '0x27' }), 'a recovery system');
  assert.equal(
    kept({ TYPE: 'ext4', PART_ENTRY_TYPE: 'de94bba4-06d1-4d40-a16a-bfd50179d6ac' }),
    'a recovery system',
  );
  for (const type of ['ext4', 'xfs', 'btrfs']) assert.equal(kept({ TYPE: type }), null);
});
