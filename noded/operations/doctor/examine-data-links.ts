import type { DataLink, DataLinks } from '#shared/contract/data-links.ts';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { formatAddress } from '#shared/socket/listen-address.ts';
import { type Check, ok, warning } from './check.ts';

const CHECK = 'data-links';

/** Tries the data address of every other node from this one. */
export const checkDataLinks: Check = async ({ config, records }) => {
  const { peers, nodes } = records;
  if (peers === null) return [];
  // An unavailable store is a finding of its own.
  const listed = await nodes.list().catch(() => []);
  const others = listed.filter(({ name, flags }) => name !== config.nodeName && !flags.offline);
  const probed = others.map(({ name }) => peers.probe(name).catch(() => null));
  const links = (await Promise.all(probed)).filter((link) => link !== null);
  return judgeDataLinks({ ...peers.describe(), links });
};

/** Judges where this node listens, and the links that were tried. Pure. */
export function judgeDataLinks({ address, reason, links }: DataLinks): readonly DoctorFinding[] {
  if (links.length === 0) return [];
  return [judgeAddress(address, reason), ...judgeLinks(links)];
}

function judgeAddress(address: DataLinks['address'], reason: string | null): DoctorFinding {
  if (address !== null)
    return ok(CHECK, `this node accepts data links at ${formatAddress(address)}`);
  return warning(
    CHECK,
    `this node accepts no data links, so data of other nodes comes through the store: ${reason}`,
    'Start gnt-noded with --data-address HOST:PORT, an address that the other nodes reach',
  );
}

function judgeLinks(links: readonly DataLink[]): readonly DoctorFinding[] {
  const direct = links.filter(({ path }) => path === 'direct').map(({ node }) => node);
  return [
    ...(direct.length === 0 ? [] : [ok(CHECK, `direct TLS 1.3 to ${direct.join(', ')}`)]),
    ...links.filter(({ path }) => path === 'store').map(warnOf),
  ];
}

function warnOf({ node, address, reason }: DataLink): DoctorFinding {
  const hint =
    address === null
      ? `Start gnt-noded on ${node} with --data-address HOST:PORT, or upgrade it`
      : `Check that gnt-noded runs on ${node}, and that firewalls allow TCP from this node to ${formatAddress(address)}`;
  return warning(CHECK, `data for ${node} goes through the store: ${reason}`, hint);
}
