import { readFileSync, statSync } from 'node:fs';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { DEFAULT_FIRST_POWERLESS_UID } from '#shared/sandbox/plan-sandbox.ts';

/**
 * Range of user ids for QEMU processes, without names.
 *
 * User and group of a QEMU process are the first number of the range plus its pid. Running
 * processes of a host have different pids, so QEMU processes have different users. No allocation,
 * lock or release is needed, even after crashes and with several daemons on a host.
 */
export interface MachineUsers {
  readonly first: number;
  /** Inclusive. */
  readonly last: number;
}

/** PID_MAX_LIMIT of 64-bit Linux (linux/threads.h), exclusive. */
const PROCESS_NUMBERS = 4_194_304;
export const DEFAULT_FIRST_MACHINE_UID = DEFAULT_FIRST_POWERLESS_UID;
/** 16-bit ids include special ones, such as 65534. */
const MIN_FIRST_UID = 65_536;
/** Some programs store ids as signed numbers. */
const MAX_LAST_UID = 2_147_483_647;
const KVM_DEVICE = '/dev/kvm';

const ACCOUNT_FILES = ['/etc/passwd', '/etc/group'] as const;
const SUBORDINATE_FILES = ['/etc/subuid', '/etc/subgid'] as const;

/** @throws RangeError with the bounds */
export function planMachineUsers(first: number): MachineUsers {
  const last = first + PROCESS_NUMBERS - 1;
  if (!Number.isInteger(first) || first < MIN_FIRST_UID || last > MAX_LAST_UID) {
    throw new RangeError(
      `it is not between ${MIN_FIRST_UID} and ${MAX_LAST_UID - PROCESS_NUMBERS + 1}`,
    );
  }
  return { first, last };
}

export function isMachineUser({ first, last }: MachineUsers, uid: number): boolean {
  return uid >= first && uid <= last;
}

/**
 * @throws AppError HOST_PREREQUISITE when an account has ids of the range, or this container lacks
 * them
 */
export function requireMachineUsers(users: MachineUsers): void {
  const problem = findUserCollision(users, readText);
  if (problem === undefined) return;
  const { first, last } = users;
  throw new AppError(
    'HOST_PREREQUISITE',
    `instances need the users ${first} to ${last}: ${problem}`,
    {
      hint: 'Choose a free range: gnt-noded --machine-uids FIRST',
    },
  );
}

/**
 * Returns a description of the collision, or undefined.
 * @param read returns a file's text, empty when missing
 */
export function findUserCollision(
  users: MachineUsers,
  read: (path: string) => string,
): string | undefined {
  for (const path of ACCOUNT_FILES) {
    for (const [name, , id] of fieldsOf(read(path)))
      if (id && isMachineUser(users, Number(id))) return `${path} assigns ${id} to ${name}`;
  }
  for (const path of SUBORDINATE_FILES) {
    for (const [name, start = '', count = ''] of fieldsOf(read(path))) {
      const end = Number(start) + Number(count) - 1;
      if (count && Number(start) <= users.last && end >= users.first)
        return `${path} assigns ${start} to ${end} to ${name}`;
    }
  }
  const isMapped = read('/proc/self/uid_map')
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .some(([inside = NaN, , count = 0]) => inside <= users.first && inside + count > users.last);
  return isMapped ? undefined : 'this container does not have them (/proc/self/uid_map)';
}

/**
 * Returns the group that QEMU needs for KVM; null when every user or only root may open the device.
 * QEMU opens it by name, because versions before 8.2 accept no descriptor. This group is the only
 * id that QEMU processes share.
 */
export function findKvmGroup(device = KVM_DEVICE): number | null {
  const found = statSync(device, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o006) === 0o006) return null;
  // A QEMU process must not have root's group.
  return (found.mode & 0o060) === 0o060 && found.gid !== 0 ? found.gid : null;
}

function fieldsOf(text: string): readonly (readonly string[])[] {
  return text.split('\n').map((line) => line.split(':'));
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return '';
    throw error;
  }
}
