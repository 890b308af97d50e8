import type { DoctorFinding } from '#shared/contract/api.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { NatReport } from '../../net/tenant/nat-networks.ts';
import { type Check, failure, ok, warning } from './check.ts';
import { examineCommands } from './examine-commands.ts';

/** Age up to which a repair causes a warning. */
const RECENT_MS = 60 * 60_000;

/** Programs that only nodes with networks of their own need. */
const COMMANDS = { dnsmasq: 'dnsmasq-base' } as const;

/** Examines the networks of this node, if it makes any. */
export const checkNetworks: Check = async ({ config, records, host }) => {
  // An unavailable store is a finding of its own.
  const networks = await records.clusters.listNetworks().catch(() => []);
  const isMaker = networks.some(
    ({ connections }) => ownValue(connections, config.nodeName)?.mode === 'nat',
  );
  if (!isMaker) return [];
  const commands = await examineCommands('network-packages', COMMANDS, 'error');
  return [commands, ...examineNetworks(host.nat.report(), Date.now())];
};

export function examineNetworks(
  { failures, repairs }: NatReport,
  nowMs: number,
): readonly DoctorFinding[] {
  const check = 'networks';
  if (failures.size > 0) {
    return [...failures].map(([name, message]) =>
      failure(
        check,
        `network '${name}' is broken: ${message}`,
        'gnt-noded repairs it every ten seconds. Its guests are cut off meanwhile.',
      ),
    );
  }
  const recent = repairs.filter(({ atMs }) => nowMs - atMs < RECENT_MS);
  const last = recent.at(-1);
  if (last === undefined)
    return [ok(check, "the node's networks are unchanged since gnt-noded made them")];
  return [
    warning(
      check,
      `networks were repaired within the last hour: ${[...new Set(recent.map(({ what }) => what))].join('; ')} (last at ${new Date(last.atMs).toISOString()})`,
      'Find the program that changes them, for example a firewall that flushes all rules at reload.',
    ),
  ];
}
