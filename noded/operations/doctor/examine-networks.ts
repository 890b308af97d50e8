import type { DoctorFinding } from '#shared/contract/api.ts';
import type { NatReport } from '../../net/tenant/nat-networks.ts';

/** How long it is worth a warning that somebody took something away. */
const RECENT_MS = 60 * 60_000;

/** Networks that this node makes itself. Pure. */
export function examineNetworks(
  { failures, repairs }: NatReport,
  nowMs: number,
): readonly DoctorFinding[] {
  const check = 'networks';
  if (failures.size > 0) {
    return [...failures].map(([name, message]) => ({
      ...{ check, level: 'error', message: `network '${name}' is broken: ${message}` },
      hint: 'gnt-noded repairs it every ten seconds. Its guests are cut off meanwhile.',
    }));
  }
  const recent = repairs.filter(({ atMs }) => nowMs - atMs < RECENT_MS);
  const last = recent.at(-1);
  if (last === undefined)
    return [
      {
        check,
        level: 'ok',
        message: "the node's networks are unchanged since gnt-noded made them",
        hint: null,
      },
    ];
  return [
    {
      ...{ check, level: 'warning' },
      message: `networks were repaired within the last hour: ${[...new Set(recent.map(({ what }) => what))].join('; ')} (last at ${new Date(last.atMs).toISOString()})`,
      hint: 'Find the program that changes them, for example a firewall that flushes all rules at reload.',
    },
  ];
}
