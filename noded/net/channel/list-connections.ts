import type { GuestConnection } from '#shared/contract/guest-handover.ts';
import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import { run } from '#shared/process/run.ts';

export interface ListedChannel {
  /** The network namespace of the channels. */
  readonly namespacePath: string;
  readonly device: string;
  /** The guest's IPv4 address. */
  readonly guestIp: string;
}

/** More than a view allows one guest; what a guest leaves half closed beyond that harms itself. */
const MAX_CONNECTIONS = 4096;
/** Nobody waits: the guest has had all that this host sent, and its end. */
const OVER = new Set(['LISTEN', 'FIN-WAIT-2', 'TIME-WAIT', 'UNCONN']);
/** An address, perhaps in brackets and with the device, and a port (ss(8)). */
const END = /^\[?([0-9a-f.:]+?)\]?(?:%[^:]+)?:(\d+)$/;

/**
 * The TCP connections that the kernel has to a guest over its channel, to be told to a host to
 * which it goes. metad knows fewer: those that it has not accepted yet, and those that it has
 * closed while the guest has not got the last of an answer, are the kernel's alone.
 * @throws CommandFailed of `ss`, from Debian's iproute2
 */
export async function listConnections({
  namespacePath,
  device,
  guestIp,
}: ListedChannel): Promise<readonly GuestConnection[]> {
  const args = [`--net=${namespacePath}`, 'ss', '-Htan', `dev = ${device}`];
  const { stdout } = await run('nsenter', args);
  return parseConnections(stdout, guestIp).slice(0, MAX_CONNECTIONS);
}

/** Pure: of what `ss -Htan` says. */
export function parseConnections(text: string, guestIp: string): readonly GuestConnection[] {
  return text.split('\n').flatMap((line): readonly GuestConnection[] => {
    const [state = '', , , own = '', peer = ''] = line.trim().split(/\s+/);
    const [, from, port] = END.exec(own) ?? [];
    const [, to = '', guestPort] = END.exec(peer) ?? [];
    if (OVER.has(state) || port === undefined || guestPort === undefined) return [];
    const ports = { port: Number(port), guestPort: Number(guestPort) };
    if (from === SERVICE_IPV4 && to === guestIp) return [{ ...ports, guestIpv6: null }];
    return from === SERVICE_IPV6 && to.startsWith('fe80:') ? [{ ...ports, guestIpv6: to }] : [];
  });
}
