import { randomUUID } from 'node:crypto';
import { hasVolumes } from '#shared/contract/disk-template.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import {
  asItRuns,
  describeWaiting,
  differingSettings,
  waitingSettings,
} from '#shared/contract/settings-of-run.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstanceDisks } from '../storage/instance-disks.ts';
import { changeDisks, changeNics } from '../instances/record/change-parts.ts';
import { warnOfNicOrder, warnOfUnheard } from '../instances/view/cloud-init-datasource.ts';
import type { InstanceRunner } from '../instances/instance-runner.ts';
import { settingsOfStart, withSettingsOfRun } from '../instances/view/settings-of-run.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { NicTaps } from '../net/tenant/nic-taps.ts';
import { drawMacs } from '../records/channel-addresses.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';

export type Parts = Pick<InstanceRecord, 'nics' | 'disks'>;
type Modify = OpcodeOf<'INSTANCE_SET_PARAMS'>;
interface PartFiles {
  readonly disks: Pick<InstanceDisks, 'settle' | 'activate' | 'checkSizes' | 'checkSpace'>;
  readonly runner: Pick<InstanceRunner, 'isRunning' | 'checkDisksUnused'>;
  readonly clusters: Pick<ClusterRepository, 'listNetworks' | 'load'>;
  readonly nicTaps: Pick<NicTaps, 'check'>;
}

/**
 * Plans the NICs and disks after a change and refuses impossible changes. Draws UUIDs and MACs
 * here, because the job may try its commit twice.
 * @throws AppError VALIDATION, INSTANCE_STATE, DISK_MISSING, DISK_SPACE
 */
export async function planParts(
  instance: InstanceRecord,
  opcode: Modify,
  { disks, runner, clusters, nicTaps }: PartFiles,
): Promise<Parts> {
  const networks = opcode.nics.length === 0 ? [] : await clusters.listNetworks();
  const isInVolumes = hasVolumes(instance.diskTemplate);
  const { vgName, zfsPool } = isInVolumes ? await clusters.load() : {};
  const context = { newUuid: randomUUID, newMac: drawMacs(networks), vgName, zfsPool };
  const planned: Parts = {
    nics: changeNics(instance, opcode.nics, context),
    disks: changeDisks(instance, opcode.disks, context),
  };
  for (const nic of newlyBridged(instance.nics, planned.nics)) await nicTaps.check(nic);
  if (opcode.disks.length === 0) return planned;
  if (planned.disks.length < instance.disks.length) refuseOfRunning(instance, planned, runner);
  await runner.checkDisksUnused(instance);
  // A removal whose commit was refused has left its file under another name.
  await disks.settle(instance);
  await disks.activate(instance);
  await disks.checkSizes(planned.disks, instance);
  if (planned.disks.length > instance.disks.length) await disks.checkSpace(instance);
  return planned;
}

/**
 * Returns the record with its planned NICs and disks. Pure.
 * @param before the record before the change if the instance runs, else null
 */
export function applyParts(
  instance: InstanceRecord,
  planned: Parts,
  before: InstanceRecord | null,
): InstanceRecord {
  const run = before && settingsOfStart(asItRuns({ ...before, partsOfRun: instance.partsOfRun }));
  return withSettingsOfRun({ ...instance, ...planned }, run);
}

/** Logs hints about new NICs, and the changes that wait for the next start. */
export function tellParts(
  before: InstanceRecord,
  changed: InstanceRecord,
  opcode: Modify,
  { report }: JobContext,
): void {
  const { nics, metadataToken, hvparams } = opcode;
  const order = warnOfNicOrder(before, changed);
  if (order !== null) report.log(order, 'warn');
  const changesReport = metadataToken !== undefined || hvparams.boot_report !== undefined;
  if (nics.length > 0 || changesDatasource(opcode) || changesReport)
    for (const warning of warnOfUnheard(changed)) report.log(warning, 'warn');
  if (nics.some(({ action }) => action !== 'remove'))
    report.log(
      'cloud-init configures NICs only at its first boot, unless its user data has updates: {network: {when: [boot]}}',
    );
  const now = differingSettings(before, changed);
  const waiting = waitingSettings(changed).filter((name) => now.includes(name));
  if (waiting.length === 0) return;
  report.log(
    `${describeWaiting(waiting)}: gnt-instance reboot ${changed.name} (a reboot inside the guest is not enough)`,
    'warn',
  );
}

/** Returns whether a change affects how a guest finds its metadata. Pure. */
export function changesDatasource(opcode: Modify): boolean {
  const { networkConfig, seedDisk, dialects, communication } = opcode;
  return [networkConfig, seedDisk, dialects, communication].some((value) => value !== undefined);
}

function newlyBridged(before: Parts['nics'], after: Parts['nics']): Parts['nics'] {
  return after.filter(
    ({ uuid, mode, link, networkName }) =>
      mode === 'bridged' &&
      !before.some(
        (nic) =>
          nic.uuid === uuid &&
          nic.mode === mode &&
          nic.link === link &&
          nic.networkName === networkName,
      ),
  );
}

/**
 * Refuses to remove a disk of a running instance. Allowed is only the last disk, which leaves the
 * others their numbers, and only if it was added while the instance ran: disks from the start are
 * in slots that cannot be emptied. A disk that found no free port is not attached at all.
 * @throws AppError INSTANCE_STATE
 */
function refuseOfRunning(
  { name, uuid, disks, partsOfRun }: InstanceRecord,
  planned: Parts,
  runner: PartFiles['runner'],
): void {
  if (!runner.isRunning(uuid)) return;
  const last = disks.at(-1);
  const isLast = planned.disks.every((disk) => disk.uuid !== last?.uuid);
  const isInSlot = (partsOfRun?.disks ?? disks).some(
    (disk) => disk.uuid === last?.uuid && disk.port === undefined,
  );
  if (isLast && !isInSlot) return;
  throw new AppError(
    'INSTANCE_STATE',
    `'${name}' is running: only the last disk can be removed, and only if it was added while the instance ran`,
    { hint: `Stop it first: gnt-instance shutdown ${name}` },
  );
}
