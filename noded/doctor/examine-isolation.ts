import { readFileSync } from 'node:fs';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { findUserCollision, type MachineUsers } from '../host/machine-users.ts';

export interface IsolationFacts {
  readonly machineUsers: MachineUsers;
  readonly userNicsReachHost: boolean;
  /** Text of a file; undefined when there is none. For tests. */
  readonly read?: (path: string) => string | undefined;
}

/** What keeps machines apart from each other and from the host. */
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
    return ok(check, `each machine runs as a user and group of its own, from ${first} to ${last}`);
  }
  return {
    check,
    level: 'error',
    message: `machines cannot have users of their own, from ${first} to ${last}: ${collision}`,
    hint: 'give a range that is free: gnt-noded --machine-uids FIRST',
  };
}

function checkUserNics(reachHost: boolean): DoctorFinding {
  const check = 'user-nics';
  if (!reachHost) return ok(check, 'NICs of mode=user reach neither this host nor its metadata');
  return {
    check,
    level: 'warning',
    message: "guests with a NIC of mode=user reach this host's loopback and its cloud's metadata",
    hint: 'start gnt-noded without --user-nics-reach-host',
  };
}

/** Yama's setting: 0 lets every process look into any other of its user. */
function checkPtrace(setting: string | undefined): DoctorFinding {
  const check = 'ptrace';
  const scope = setting?.trim();
  if (scope !== undefined && scope !== '0')
    return ok(check, `processes may not trace others of their user (ptrace_scope ${scope})`);
  return {
    check,
    level: 'warning',
    message: `processes may trace others of their user (${scope === undefined ? 'no Yama in this kernel' : 'ptrace_scope 0'}); machines have a user each, what else runs here may not`,
    hint:
      scope === undefined
        ? 'boot a kernel with CONFIG_SECURITY_YAMA, as distributions have'
        : 'sysctl kernel.yama.ptrace_scope=1',
  };
}

/** Without them, a local user may give a file of root's another name, or lead root to one. */
function checkLinks(read: (path: string) => string | undefined): DoctorFinding {
  const check = 'links';
  const settings = ['protected_hardlinks', 'protected_symlinks'];
  const off = settings.filter((name) => read(`/proc/sys/fs/${name}`)?.trim() === '0');
  if (off.length === 0) return ok(check, "local users may make no links to others' files");
  return {
    check,
    level: 'warning',
    message: `local users may make links to others' files (${off.join(' and ')} off)`,
    hint: `sysctl ${off.map((name) => `fs.${name}=1`).join(' ')}`,
  };
}

function ok(check: string, message: string): DoctorFinding {
  return { check, level: 'ok', message, hint: null };
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
