import { readFileSync, statSync } from 'node:fs';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { DEFAULT_FIRST_POWERLESS_UID } from '#shared/sandbox/plan-sandbox.ts';

/**
 * The users that machines run as: numbers without names, one for each process that a machine is.
 *
 * A machine's user, and its group, is the first number of the range plus the number of its process.
 * No two living processes of a host have the same number, so no two machines have the same user:
 * there is nothing to allocate, to lock or to free, whatever crashes and however many daemons one
 * host has.
 */
export interface MachineUsers {
  readonly first: number;
  /** The last number of the range, itself included. */
  readonly last: number;
}

/** PID_MAX_LIMIT of 64-bit Linux (linux/threads.h): numbers of processes are below it. */
const PROCESS_NUMBERS = 4_194_304;
export const DEFAULT_FIRST_MACHINE_UID = DEFAULT_FIRST_POWERLESS_UID;
/** Numbers of 16 bits have special ones among them (nobody is 65534). */
const MIN_FIRST_UID = 65_536;
/** Programs that keep a number with its sign are still about. */
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

/** @throws AppError HOST_PREREQUISITE when somebody else has numbers of the range, or nobody can */
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

/** Who has numbers of the range, in words. @param read gives a file's text, empty when missing */
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
 * The group that a machine needs for KVM; null when everybody may open the device, or nobody but
 * root. QEMU opens it by its name (before 8.2 it cannot be given a descriptor), so the group is the
 * one thing that machines have in common.
 */
export function findKvmGroup(device = KVM_DEVICE): number | null {
  const found = statSync(device, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o006) === 0o006) return null;
  // Root's own group is no group for a machine.
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
