import type { GuestConnection } from '#shared/contract/guest-handover.ts';
import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import { run } from '#shared/process/run.ts';

export interface ListedChannel {
  /** Network namespace of the channels. */
  readonly namespacePath: string;
  readonly device: string;
  readonly guestIp: string;
}

/** More than a view allows one guest. Half-closed connections beyond that harm only the guest. */
const MAX_CONNECTIONS = 4096;
/** States in which the guest has received all data and the end of the stream. */
const OVER = new Set(['LISTEN', 'FIN-WAIT-2', 'TIME-WAIT', 'UNCONN']);
/** An address, optionally in brackets and with the device, and a port (ss(8)). */
const END = /^\[?([0-9a-f.:]+?)\]?(?:%[^:]+)?:(\d+)$/;

/**
 * Lists the kernel's TCP connections to a guest over its channel, for the migration target. metad
 * lacks connections that it has not accepted yet, and closed ones whose last answer is still being
 * sent.
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

/** Parses the output of `ss -Htan`. */
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
