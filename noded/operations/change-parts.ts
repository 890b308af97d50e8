import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstanceDisks } from '../disks/instance-disks.ts';
import { changeDisks, changeNics } from '../instances/change-parts.ts';
import { warnOfUnheard } from '../instances/cloud-init-datasource.ts';
import type { InstanceRunner } from '../instances/instance-runner.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import { assertBridge } from '../network/bridged-tap.ts';
import { randomNicMac } from '../records/channel-addresses.ts';

/** NICs and disks. */
type Parts = Pick<InstanceRecord, 'nics' | 'disks'>;
type Modify = OpcodeOf<'INSTANCE_SET_PARAMS'>;
interface PartFiles {
  readonly disks: Pick<InstanceDisks, 'settle' | 'activate' | 'checkSizes' | 'checkSpace'>;
  readonly runner: Pick<InstanceRunner, 'isRunning' | 'checkDisksUnused'>;
}

export function partsOf({ nics, disks }: Parts): Parts {
  return { nics, disks };
}

/**
 * What an instance is made of after a change, everything that can be refused being refused. UUIDs
 * and MACs are drawn here: the job's commit may be tried twice.
 * @throws AppError VALIDATION, INSTANCE_STATE, DISK_MISSING, DISK_SPACE
 */
export async function planParts(
  instance: InstanceRecord,
  opcode: Modify,
  { disks, runner }: PartFiles,
): Promise<Parts> {
  const context = { newUuid: randomUUID, newMac: randomNicMac };
  const planned: Parts = {
    nics: changeNics(instance, opcode.nics, context),
    disks: changeDisks(instance, opcode.disks, context),
  };
  for (const { link } of newlyBridged(instance.nics, planned.nics)) assertBridge(link ?? 'br0');
  if (opcode.disks.length === 0) return planned;
  if (planned.disks.length < instance.disks.length) refuseOfRunning(instance, runner);
  await runner.checkDisksUnused(instance);
  // A removal whose record was refused has left its file under another name.
  await disks.settle(instance);
  await disks.activate(instance);
  await disks.checkSizes(planned.disks);
  if (planned.disks.length > instance.disks.length) await disks.checkSpace();
  return planned;
}

/** Pure. @param ofRun what the machine has that runs, null without one */
export function applyParts(
  instance: InstanceRecord,
  planned: Parts,
  ofRun: Parts | null,
): InstanceRecord {
  const former = instance.partsOfRun ?? ofRun;
  const isChanged = ofRun !== null && !isDeepStrictEqual(former, planned);
  return { ...instance, ...planned, partsOfRun: isChanged ? former : null };
}

export function tellParts(
  changed: InstanceRecord,
  { nics, disks }: Modify,
  isRunning: boolean,
  { report }: JobContext,
): void {
  if (nics.length > 0) {
    for (const warning of warnOfUnheard(changed)) report.log(warning, 'warn');
    if (nics.some(({ action }) => action !== 'remove'))
      report.log(
        'cloud-init sets up cards of its first boot alone, unless its user data has updates: {network: {when: [boot]}}',
      );
  }
  if (changed.partsOfRun === null || !isRunning) return;
  const what = [...(nics.length > 0 ? ['NICs'] : []), ...(disks.length > 0 ? ['disks'] : [])];
  if (what.length === 0) return;
  report.log(
    `its ${what.join(' and ')} change at its next start: gnt-instance reboot ${changed.name}; a reboot from within the guest is none`,
    'warn',
  );
}

function newlyBridged(before: Parts['nics'], after: Parts['nics']): Parts['nics'] {
  return after.filter(
    ({ uuid, mode, link }) =>
      mode === 'bridged' &&
      !before.some((nic) => nic.uuid === uuid && nic.mode === mode && nic.link === link),
  );
}

/** QEMU has its file, and what is on it would be lost at a moment that nobody has in mind. */
function refuseOfRunning({ name, uuid }: InstanceRecord, runner: PartFiles['runner']): void {
  if (!runner.isRunning(uuid)) return;
  throw new AppError('INSTANCE_STATE', `'${name}' is running, none of its disks is removed`, {
    hint: `gnt-instance shutdown ${name} first`,
  });
}
