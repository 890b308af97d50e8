import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { bootAppliance } from '../../appliance/support/boot-appliance.ts';
import { buildTestAppliance } from '../../appliance/support/build-test-appliance.ts';
import type { Report } from '../support/measurement.ts';

/** Content of packages, as a shell script that fills the current folder. */
const contents: Readonly<Record<string, string>> = {
  '20,000 small files': manyFiles(20_000),
  '200,000 small files': manyFiles(200_000),
  'one file of 256 MiB': 'head -c 268435456 /dev/urandom >large',
};
const DISK_MIB = 1536;
/** Limit for one appliance, which unpacks the package twice. */
const DEADLINE_MS = 3_600_000;

function manyFiles(count: number): string {
  return `python3 -c '
import os
for i in range(${count}):
    if i % 500 == 0: os.makedirs("data/%d" % (i // 500))
    open("data/%d/f%d" % (i // 500, i), "w").write("x" * 200)'`;
}

/**
 * Unpacks the package with GNU tar in the appliance, before the agent does. Both use a fresh ext4.
 */
const PEER = `
part=/dev/disk/by-id/virtio-disk0
peer=/dev/disk/by-id/virtio-disk1
for disk in $part $peer; do mke2fs -q -t ext4 -N 300000 -E lazy_itable_init=0 $disk; done
mkdir -p /mnt/t; mount $part /mnt/t; mkdir /mnt/t/etc; echo ID=bench >/mnt/t/etc/os-release; umount /mnt/t
mount $peer /mnt/t
now() { sed 's/ .*//; s/\\.//' /proc/uptime; }
from=$(now)
curl -s http://169.254.169.254/ganeti/latest/os/package | tar -xzf - -C /mnt/t
echo "peer-hundredths $(($(now) - from))"
umount /mnt/t; sync`;

/**
 * Compares personalization packages with many files and with one: the agent against GNU tar in the
 * same VM.
 */
export async function measure(report: Report): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'gnt-bench-overlay-'));
  try {
    const applianceDir = await buildTestAppliance(directory);
    for (const [name, fill] of Object.entries(contents)) {
      const shell = (command: string): void =>
        void execFileSync('bash', ['-euc', command], { cwd: directory, stdio: 'ignore' });
      shell(`rm -rf content os; mkdir -p content os/untrusted; cd content; ${fill}`);
      shell(`tar -C content -czf package.tgz .; rm -rf content disk0 disk1
        cat >os/untrusted/create <<'END'\n#!/bin/bash\nset -eu\n${PEER}\nEND
        chmod 755 os/untrusted/create; tar -C os -cf os.tar .; truncate -s ${DISK_MIB}M disk0 disk1`);
      const disks = ['disk0', 'disk1'].map((serial) => ({ serial, path: join(directory, serial) }));
      const plan: InstallPlan = {
        version: 1,
        installId: '11111111-1111-1111-1111-111111111111',
        instance: 'bench.example.com',
        disks: disks.map(({ serial, path }) => ({ serial, sizeBytes: statSync(path).size })),
        image: null,
        scripts: { script: 'create', path: 'untrusted/create', environment: {} },
        personalization: { format: 'tar.gz' },
      };
      const { events, console: said } = await bootAppliance(
        applianceDir,
        disks,
        {
          plan,
          definitionTar: readFileSync(join(directory, 'os.tar')),
          osPackage: readFileSync(join(directory, 'package.tgz')),
        },
        DEADLINE_MS,
      );
      const at = (type: string): number => {
        const found = events.find(
          (event) => event.type === type && 'stage' in event && event.stage === 'personalize',
        );
        if (!found)
          throw new Error(`${name}: the appliance did not lay the package over:\n${said}`);
        return found.atMs;
      };
      const seconds = (at('stage-finished') - at('stage-started')) / 1000;
      const peer = Number(/peer-hundredths (\d+)/.exec(said)?.[1]) / 100;
      report({
        name: `package of ${name}`,
        value: seconds,
        unit: 's',
        compared_with: { name: 'GNU tar in the same VM', value: peer },
      });
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
}
