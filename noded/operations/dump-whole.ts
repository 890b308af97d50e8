import { hasVolumes } from '#shared/contract/disk-template.ts';
import { readFile, realpath, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { describeInstance } from '../instances/backup/describe-export.ts';
import { type ExportRecord, keepRecord } from '../instances/backup/export-record.ts';
import { type UnfinishedExport, wholeFileOf } from '../instances/backup/export-store.ts';
import { compressDisk } from '../storage/compressed-disk.ts';
import { takenBytes } from '../storage/install-disks.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import { refuseUnfinished } from './copy-instance.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Dumps disks byte by byte, for an instance without an export script. The export keeps the parts of
 * the record that a copy would have.
 * @param instance that does not run
 * @throws AppError DISK_IN_USE, DISK_MISSING, NOT_SUPPORTED: a disk is a link
 */
export async function dumpWhole(
  instance: InstanceRecord,
  unfinished: UnfinishedExport,
  { disks, nodeName, clock }: Pick<OperationDependencies, 'disks' | 'nodeName' | 'clock'>,
  { report, signal }: Pick<JobContext, 'report' | 'signal'>,
): Promise<{ record: ExportRecord; sizeBytes: number }> {
  await using held = await disks.hold(instance);
  void held;
  const onDisk = addUp(instance.disks, (done, total) =>
    report.progress('exporting disks', done, total),
  );
  let sizeBytes = 0;
  let takenInAll = 0;
  for (const [disk, { sizeBytes: diskBytes }] of instance.disks.entries()) {
    const deviceBytes = hasVolumes(instance.diskTemplate) ? diskBytes : null;
    const to = unfinished.wholePath(disk);
    // The path of a volume is a link that udev makes.
    const path = disks.pathOf(instance, disk);
    const from = deviceBytes === null ? path : await realpath(path);
    await compressDisk({ from, to, deviceBytes }, signal, onDisk(disk));
    sizeBytes += (await stat(to)).size;
    takenInAll += deviceBytes ?? (await takenBytes(from));
  }
  if (instance.snapshots.length > 0) report.log('the export does not hold its snapshots');
  const variables = await readVariables(disks.variablesPathOf(instance));
  const about = { node: nodeName, createdAtMs: clock.now(), dumpOf: wholeFileOf };
  const kept = keepRecord({ ...instance, installState: refuseUnfinished(instance) });
  const whole = { instance: kept, takenBytes: takenInAll, variables };
  return { record: { ...describeInstance(instance, about), whole }, sizeBytes };
}

/** Converts the progress of each disk to the progress of all disks together. */
export function addUp(
  disks: readonly { readonly sizeBytes: number }[],
  onProgress: (doneBytes: number, totalBytes: number) => void,
): (disk: number) => (doneBytes: number) => void {
  const sum = (list: typeof disks): number =>
    list.reduce((all, { sizeBytes }) => all + sizeBytes, 0);
  const total = sum(disks);
  return (disk) => {
    const before = sum(disks.slice(0, disk));
    return (done) => onProgress(before + done, total);
  };
}

async function readVariables(path: string): Promise<string | null> {
  try {
    return (await promisify(zstdCompress)(await readFile(path))).toString('base64');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}
