import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { build } from 'esbuild';
import { AgentWord } from '../../../noded/provision/appliance/agent-word.ts';
import { type ApplianceRun, bootAppliance } from '../support/boot-appliance.ts';
import { buildTestAppliance } from '../support/build-test-appliance.ts';

/**
 * Disks that are hard to read, all in one machine whose script runs the agent's own code on them.
 * At its end the script resets the machine.
 */
const top = join(import.meta.dirname, '../../..');
const SIZES_MIB = { disk0: 48, first: 320, second: 64 };
let directory = '';
let run: ApplianceRun;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-hostile-disks-'));
  const os = join(directory, 'os/untrusted');
  mkdirSync(os, { recursive: true });
  cpSync(join(top, 'fixtures/hostile/disks'), join(os, 'disks'), { recursive: true });
  await build({
    entryPoints: [join(import.meta.dirname, 'support/try-disks.ts')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: join(os, 'try-disks.mjs'),
    logLevel: 'silent',
  });
  const script = `#!/bin/bash
exec 2>&1
/opt/gnt/node untrusted/try-disks.mjs untrusted/disks
echo tried
sleep 5
echo 1 >/proc/sys/kernel/sysrq
echo b >/proc/sysrq-trigger
sleep 60
`;
  writeFileSync(join(os, 'create'), script, { mode: 0o755 });
  execFileSync('tar', ['-C', join(directory, 'os'), '-cf', join(directory, 'os.tar'), '.']);
  const disks = Object.entries(SIZES_MIB).map(([serial, sizeMiB]) => {
    const path = join(directory, serial);
    writeFileSync(path, '');
    truncateSync(path, sizeMiB * 1024 ** 2);
    return { serial, path };
  });
  run = await bootAppliance(await buildTestAppliance(directory), disks, {
    plan: {
      version: 1,
      installId: '11111111-1111-1111-1111-111111111111',
      instance: 'test.example.com',
      disks: Object.entries(SIZES_MIB).map(([serial, sizeMiB]) => ({
        serial,
        sizeBytes: sizeMiB * 1024 ** 2,
      })),
      image: null,
      scripts: { script: 'create', path: 'untrusted/create', environment: {} },
      personalization: null,
    },
    definitionTar: readFileSync(join(directory, 'os.tar')),
  });
});
after(() => rmSync(directory, { recursive: true }));

function outcomeOf(name: string): string {
  const found = run.events.flatMap((event) =>
    event.type === 'log' && event.line.startsWith(`["${name}.sh"`) ? [event.line] : [],
  );
  assert.equal(found.length, 1, run.console);
  const [, outcome] = JSON.parse(found[0] ?? '') as [string, string];
  return outcome;
}

for (const [name, expected] of Object.entries({
  'lvm-twins': /^IMAGE_INVALID: two volume groups have the name twins$/,
  'lvm-copies': /^NOTHING_TO_MOUNT: .*: \/dev\/vd\w \(LVM2_member\), \/dev\/vd\w \(LVM2_member\)$/,
  'lvm-image': /^\/dev\/mapper\/imaged-root \(ext4\) on \/\nit is a root$/,
  'mbr-loop': /^NOTHING_TO_MOUNT: the disks of the instance hold no file system/,
  ntfs: /^NOTHING_TO_MOUNT: .*\/dev\/vd\w \(ntfs\)/,
  'two-roots':
    /^\/dev\/vd\w1 \(ext4\) also looks like a root file system; using \/dev\/vd\w2 \(ext4\), the better match\n\/dev\/vd\w2 \(ext4\) on \/\nit is a root$/,
  'xfs-dirty-log': /^\/dev\/vd\w \(xfs\) on \/\nit is a root$/,
  'xfs-torn-log':
    /^cannot mount \/dev\/vd\w \(xfs\) on \/: .*log mount failed\nNOTHING_TO_MOUNT: .*\(xfs\)$/,
})) {
  test(`a disk with ${name} has the expected outcome`, () => {
    assert.match(outcomeOf(name), expected);
  });
}

test('a script that resets the appliance leaves no result', () => {
  assert.ok(run.events.some((event) => event.type === 'log' && event.line === 'tried'));
  assert.equal(
    run.events.findLast((event) => event.type === 'result'),
    undefined,
    run.console,
  );
  const word = new AgentWord();
  const believed = run.reports.flatMap((report) => word.take(report) ?? []);
  assert.equal(
    believed.find((event) => event.type === 'result'),
    undefined,
  );
});
