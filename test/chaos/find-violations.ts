import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { instanceRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';

const row = z.object({ collection: z.string(), id: z.string(), value: z.string() });
/** A record of a store; its value is JSON. */
export type Row = z.infer<typeof row>;

/**
 * Checks the invariants of an idle node with an embedded store: each job has ended; each claim on a
 * name, address or MAC matches exactly one instance; each disk has an instance, and each installed
 * instance its disks; every file is known.
 */
export async function findViolations(paths: RootPaths): Promise<readonly string[]> {
  const rows = readRows(paths.storeFile);
  const instances = rows
    .filter(({ collection }) => collection === 'instances')
    .map(({ value }) => instanceRecord.parse(JSON.parse(value)));
  return [
    ...findUnended(rows),
    ...findWrongClaims(rows, instances),
    ...instances
      .filter(({ installState }) => installState === 'installing')
      .map(({ name }) => `${name} is being installed by nobody`),
    ...(await findWrongDisks(paths, instances)),
    ...(await findUnexplainedFiles(paths)).filter((text) => !isToTakeOver(text, instances)),
  ];
}

function readRows(storeFile: string): readonly Row[] {
  const store = new DatabaseSync(storeFile, { readOnly: true });
  try {
    return row.array().parse(store.prepare('SELECT collection, id, value FROM records').all());
  } finally {
    store.close();
  }
}

function findUnended(rows: readonly Row[]): readonly string[] {
  return rows
    .filter(({ collection }) => collection === 'jobs')
    .map(({ value }) => jobRecord.parse(JSON.parse(value)))
    .filter(({ endedAtMs }) => endedAtMs === null)
    .map(({ id, summary, status }) => `job ${id}, ${summary}, is ${status} for ever`);
}

/** Finds claims on names, addresses and MACs without an owner, with the wrong owner, or missing. */
export function findWrongClaims(
  rows: readonly Row[],
  instances: readonly InstanceRecord[],
): readonly string[] {
  const wanted = new Map<string, string>();
  for (const { uuid, name, channel, nics, partsOfRun } of instances) {
    wanted.set(`claim-name ${name}`, uuid);
    wanted.set(`claim-ip ${channel.ip}`, uuid);
    for (const { mac } of [channel, ...nics, ...(partsOfRun?.nics ?? [])])
      wanted.set(`claim-mac ${mac}`, uuid);
    for (const { networkName, ip } of nics)
      if (networkName !== undefined && ip != null)
        wanted.set(`claim-network-ip ${networkName}/${ip}`, uuid);
  }
  const found = new Map(
    rows
      .filter(({ collection }) => collection.startsWith('claim-'))
      .map(({ collection, id, value }) => [`${collection} ${id}`, JSON.parse(value) as unknown]),
  );
  const keys = new Set([...wanted.keys(), ...found.keys()]);
  return [...keys]
    .filter((key) => wanted.get(key) !== found.get(key))
    .map((key) => `${key} is ${String(found.get(key))}'s, and should be ${wanted.get(key)}'s`);
}

async function findWrongDisks(
  { disksDir }: RootPaths,
  instances: readonly InstanceRecord[],
): Promise<readonly string[]> {
  const folders = await readdir(disksDir);
  const wrong = folders
    .filter((name) => !instances.some(({ uuid }) => uuid === name))
    .map((name) => `disks of nobody: ${name}`);
  for (const { name, uuid, disks, installState, diskTemplate } of instances) {
    // point-volumes.ts checks LVM volumes.
    if (installState !== 'installed' || diskTemplate === 'plain') continue;
    const there = await readdir(join(disksDir, uuid)).catch((): string[] => []);
    if (disks.some((_, index) => !there.includes(`disk${index}.raw`)))
      wrong.push(`${name} is installed, and has no disks`);
  }
  return wrong;
}

/** Known files below var, run and srv, relative to the root, with `UUID` for each UUID. */
const EXPLAINED = [
  // Backup of the store from before an upgrade.
  /^var\/lib\/gnt\/store\.sqlite\.v\d+-[\dTZ-]+\.bak$/,
  /^var\/lib\/gnt\/(boot-id|store\.sqlite(-wal|-shm)?|disks\/UUID\/(disk\d+\.raw|seed\.img))$/,
  /^var\/lib\/gnt\/images\/(sha256-[0-9a-f]+|index\.json|partial-[^/]+|[^/]+\.json|UUID)$/,
  /^var\/lib\/gnt\/(disks|images|outcomes|host-copies|appliance)(\/UUID)?$/,
  /^var\/lib\/gnt\/disks\/\.[^/]+$/,
  /^var\/lib\/gnt\/disks\/UUID\/snapshot-UUID\/disk\d+\.raw$/,
  /^var\/lib\/gnt\/(catalogues\.json|imported-images(\/sha256-[0-9a-f]+)?)$/,
  /^var\/lib\/gnt\/boot-archives\/(names\.json|[0-9a-f]{64}\.(data|index))$/,
  // Always complete: the appliance is verified before each boot.
  /^var\/lib\/gnt\/appliance\/(manifest\.json|vmlinuz|initrd\.img|root\.squashfs)$/,
  /^var\/log\/gnt\/[^/]+\.log(\.1)?$/,
  /^run\/gnt\/(noded\.(sock|lock)|metad\.json|metad\/(control|content)\.sock)$/,
  /^run\/gnt\/(metad|vm|children|channel|networks(\/.+)?)$/,
  /^srv\/ganeti\/export\/[^/.]+(\.[^/.]+)*\/(config\.ini|disk\d+\.(snap|raw\.zst))$/,
  /^srv\/ganeti\/os(\/.*)?$/,
];

/**
 * Tells whether the file is a new disk whose takeover failed. The next use of the disks completes
 * the takeover.
 */
function isToTakeOver(text: string, instances: readonly InstanceRecord[]): boolean {
  const [, uuid, id] = /disks\/([^/]+)\/disk\d+\.next-([^/]+)\.raw$/.exec(text) ?? [];
  return instances.some((instance) => instance.uuid === uuid && instance.instanceId === id);
}

async function findUnexplainedFiles({ root }: RootPaths): Promise<readonly string[]> {
  const found: string[] = [];
  for (const top of ['var/lib/gnt', 'var/log/gnt', 'run/gnt', 'srv/ganeti']) {
    const entries = await readdir(join(root, top), { recursive: true, withFileTypes: true }).catch(
      () => [],
    );
    const isFolderInUse = (path: string): boolean =>
      entries.some(({ parentPath }) => relative(root, parentPath) === path);
    for (const entry of entries) {
      const path = relative(root, join(entry.parentPath, entry.name));
      if (entry.isDirectory() && (isFolderInUse(path) || path === 'srv/ganeti/export')) continue;
      const shown = path.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID');
      if (!EXPLAINED.some((pattern) => pattern.test(shown))) found.push(`file ${path}`);
    }
  }
  return found;
}
