import type { DoctorFinding } from '#shared/contract/api.ts';
import type { NatReport } from '../networks/nat-networks.ts';

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
      ...{ check, level: 'error', message: `network '${name}' is not as it should be: ${message}` },
      hint: 'it is tried again every ten seconds; what its guests may send is closed meanwhile',
    }));
  }
  const recent = repairs.filter(({ atMs }) => nowMs - atMs < RECENT_MS);
  const last = recent.at(-1);
  if (last === undefined)
    return [{ check, level: 'ok', message: 'its networks stand as they were made', hint: null }];
  return [
    {
      ...{ check, level: 'warning' },
      message: `networks were put back within the last hour: ${[...new Set(recent.map(({ what }) => what))].join('; ')} (last at ${new Date(last.atMs).toISOString()})`,
      hint: 'look who does that: a firewall that flushes all rules when it is loaded, or a person',
    },
  ];
}
