import { execFileSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { run } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import { EXPLODE_SCRIPT } from '../../../noded/netboot/explode-script.ts';
import { bootAppliance } from '../../appliance/support/boot-appliance.ts';
import { buildTestAppliance } from '../../appliance/support/build-test-appliance.ts';
import { xorriso } from '../../lab/unpacked-packages.ts';
import { unpackProgram, type UnpackedProgram } from '../support/debian-program.ts';
import type { Report } from '../support/measurement.ts';

/** 650 MB in files with the median size of a distribution's packages. */
const FOLDERS = 50;
const FILES_OF_A_FOLDER = 100;
const FILE_BYTES = 130_000;
const SCRATCH_BYTES = 2048 * MIB;
const DEADLINE_MS = 900_000;
const BSDTAR = [
  ...['libarchive-tools', 'libarchive13', 'libnettle8', 'libxml2', 'libicu72', 'liblz4-1'],
  ...['libbz2-1.0', 'liblzma5', 'libzstd1', 'zlib1g', 'libacl1'],
];

/** bsdtar extracts the ISO to a fresh ext4 first, then our script opens the same ISO. */
const SCRIPT = `#!/bin/bash
set -eu
now() { sed 's/ .*//; s/\\.//' /proc/uptime; }
peer=/dev/disk/by-id/virtio-disk1
mke2fs -q -t ext4 -E lazy_itable_init=0 $peer >&2
mkdir -p /mnt/t; mount $peer /mnt/t
tar -xf /dev/disk/by-id/virtio-tools -C /tmp
from=$(now)
LD_LIBRARY_PATH=/tmp/lib /tmp/bsdtar -xf /dev/disk/by-id/virtio-disk0 -C /mnt/t
sync
echo "peer-hundredths $(($(now) - from))" >&2
umount /mnt/t
exec ./untrusted/explode`;

/** Compares opening an ISO in an appliance: our script and agent against bsdtar in the same VM. */
export async function measure(report: Report): Promise<void> {
  const bsdtar = await unpackProgram('bsdtar', BSDTAR, 'usr/bin/bsdtar');
  if (bsdtar === null) return;
  const directory = mkdtempSync(join(tmpdir(), 'gnt-bench-archives-'));
  try {
    const applianceDir = await buildTestAppliance(directory);
    const iso = await makeIso(directory);
    const [peer, dump] = [join(directory, 'peer'), join(directory, 'dump')];
    for (const path of [peer, dump]) {
      writeFileSync(path, '');
      truncateSync(path, SCRATCH_BYTES);
    }
    const sizeBytes = statSync(iso).size;
    const plan: InstallPlan = {
      version: 1,
      installId: '11111111-1111-1111-1111-111111111111',
      instance: 'bench.example.com',
      disks: [
        { serial: 'disk0', sizeBytes },
        { serial: 'disk1', sizeBytes: SCRATCH_BYTES },
      ],
      image: null,
      scripts: {
        script: 'export',
        path: 'untrusted/export',
        environment: { ARCHIVE_BYTES: String(sizeBytes) },
        dumps: [{ disk: 0, serial: 'dump0', sizeBytes: SCRATCH_BYTES }],
      },
      personalization: null,
    };
    const { events, console: said } = await bootAppliance(
      applianceDir,
      [
        { path: iso, serial: 'disk0', readOnly: true },
        { path: peer, serial: 'disk1' },
        { path: dump, serial: 'dump0' },
        { path: packPeer(directory, bsdtar), serial: 'tools', readOnly: true },
      ],
      { plan, definitionTar: packDefinition(directory) },
      DEADLINE_MS,
    );
    const at = (type: string): number => {
      const isIt = (event: (typeof events)[number]): boolean =>
        event.type === type && 'stage' in event && event.stage === 'os-scripts';
      const found = events.find(isIt);
      if (!found) throw new Error(`the appliance did not open the ISO:\n${said}`);
      return found.atMs;
    };
    const peerSeconds = Number(/peer-hundredths (\d+)/.exec(said)?.[1]) / 100;
    report({
      name: 'an ISO of 650 MB is opened',
      value: (at('stage-finished') - at('stage-started')) / 1000 - peerSeconds,
      unit: 's',
      compared_with: { name: 'bsdtar in the same VM', value: peerSeconds },
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function makeIso(directory: string): Promise<string> {
  const [tree, iso] = [join(directory, 'tree'), join(directory, 'iso')];
  const bytes = Buffer.alloc(FILE_BYTES);
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    mkdirSync(join(tree, `pool/${folder}`), { recursive: true });
    for (let file = 0; file < FILES_OF_A_FOLDER; file += 1) {
      randomFillSync(bytes);
      writeFileSync(join(tree, `pool/${folder}/package_${file}.deb`), bytes);
    }
  }
  const { path, libraries } = await xorriso();
  await run(path, ['-as', 'mkisofs', '-quiet', '-R', '-J', '-o', iso, tree], {
    env: { LD_LIBRARY_PATH: libraries },
  });
  rmSync(tree, { recursive: true });
  return iso;
}

/** Packs bsdtar onto a disk, because it exceeds the size limit of an OS definition. */
function packPeer(directory: string, { path, libraries }: UnpackedProgram): string {
  const [folder, disk] = [join(directory, 'tools'), join(directory, 'tools.tar')];
  mkdirSync(join(folder, 'lib'), { recursive: true });
  copyFileSync(path, join(folder, 'bsdtar'));
  const copy = 'cp -L "$1"/*.so.[0-9]* "$2/lib"; tar -C "$2" -cf "$3" .';
  execFileSync('bash', ['-euc', copy, 'bash', libraries, folder, disk]);
  return disk;
}

function packDefinition(directory: string): Buffer {
  const folder = join(directory, 'os');
  mkdirSync(join(folder, 'untrusted'), { recursive: true });
  writeFileSync(join(folder, 'untrusted/export'), SCRIPT, { mode: 0o755 });
  writeFileSync(join(folder, 'untrusted/explode'), EXPLODE_SCRIPT, { mode: 0o755 });
  return execFileSync('tar', ['-C', folder, '-cf', '-', '.']);
}
