import { describeRemoval, OFFLINE_HINT, REJOIN_HINT } from '../../cluster/membership/membership.ts';
import { type Check, failure, ok, warning } from './check.ts';

export const checkMembership: Check = async ({ config, records }) => {
  const check = 'membership';
  const removed = records.membership.removedAtMs();
  if (removed !== null) return failure(check, describeRemoval(removed), REJOIN_HINT);
  // An unavailable store is a finding of its own.
  const flags = await records.nodes.flagsOf(config.nodeName).catch(() => undefined);
  if (flags?.offline !== true) return ok(check, 'this node is a member of its cluster');
  return warning(
    check,
    'this node is marked offline although its daemon runs: its instances keep running, but other nodes ignore it and its jobs are refused',
    OFFLINE_HINT,
  );
};

export const checkOrphans: Check = ({ guests }) => {
  const orphans = guests.orphans.list();
  if (orphans.length === 0) return ok('orphans', 'every running instance has a record');
  const named = orphans.map(({ name, uuid, pid }) => `${name} (${uuid}, pid ${pid})`);
  return warning(
    'orphans',
    `orphaned instances keep running, untouched: ${named.join(', ')}`,
    'Adopt one (gnt-instance adopt NAME), or stop it and remove its disks (gnt-instance remove NAME). A record restored with the store is matched within seconds.',
  );
};
