import { readFileSync } from 'node:fs';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { findUserCollision, type MachineUsers } from '../../host/machine-users.ts';
import { type Check, failure, ok, warning } from './check.ts';

interface IsolationFacts {
  readonly machineUsers: MachineUsers;
  readonly userNicsReachHost: boolean;
  /** Returns the text of a file; undefined if it does not exist. For tests. */
  readonly read?: (path: string) => string | undefined;
}

export const checkIsolation: Check = ({ config }) => examineIsolation(config);

export function examineIsolation(facts: IsolationFacts): readonly DoctorFinding[] {
  const { read = readText } = facts;
  return [
    checkMachineUsers(facts.machineUsers, read),
    checkUserNics(facts.userNicsReachHost),
    checkPtrace(read('/proc/sys/kernel/yama/ptrace_scope')),
    checkLinks(read),
  ];
}

function checkMachineUsers(
  users: MachineUsers,
  read: (path: string) => string | undefined,
): DoctorFinding {
  const check = 'machine-users';
  const { first, last } = users;
  const collision = findUserCollision(users, (path) => read(path) ?? '');
  if (collision === undefined) {
    return ok(check, `each instance has its own user and group, from ${first} to ${last}`);
  }
  return failure(
    check,
    `instances cannot have users of their own from ${first} to ${last}: ${collision}`,
    'Choose a free range: gnt-noded --machine-uids FIRST',
  );
}

function checkUserNics(reachHost: boolean): DoctorFinding {
  const check = 'user-nics';
  if (!reachHost)
    return ok(check, 'NICs with mode=user reach neither this host nor its cloud metadata');
  return warning(
    check,
    "guests with a mode=user NIC can reach this host's loopback and its cloud's metadata service",
    'Start gnt-noded without --user-nics-reach-host.',
  );
}

/** Examines Yama's setting: 0 allows every process to trace others of its user. */
function checkPtrace(setting: string | undefined): DoctorFinding {
  const check = 'ptrace';
  const scope = setting?.trim();
  if (scope !== undefined && scope !== '0')
    return ok(
      check,
      `processes cannot trace other processes of their user (ptrace_scope ${scope})`,
    );
  return warning(
    check,
    `processes can trace other processes of their user (${scope === undefined ? 'the kernel has no Yama' : 'ptrace_scope 0'}); instances have one user each, other services of this host may not`,
    scope === undefined
      ? 'Boot a kernel with CONFIG_SECURITY_YAMA, as distributions build it.'
      : 'sysctl kernel.yama.ptrace_scope=1',
  );
}

/**
 * Examines link protection: without it a local user may give a file of root another name, or lead
 * root to one.
 */
function checkLinks(read: (path: string) => string | undefined): DoctorFinding {
  const check = 'links';
  const settings = ['protected_hardlinks', 'protected_symlinks'];
  const off = settings.filter((name) => read(`/proc/sys/fs/${name}`)?.trim() === '0');
  if (off.length === 0) return ok(check, 'local users cannot link to files of other users');
  return warning(
    check,
    `local users can link to files of other users (${off.join(' and ')} off)`,
    `sysctl ${off.map((name) => `fs.${name}=1`).join(' ')}`,
  );
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
