import type { GuestConnection } from '#shared/contract/guest-handover.ts';
import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import { addressBytes, inNetworkNamespace, sendTcpSegments } from '#shared/sys/network-sockets.ts';
import { encodeSyn } from './tcp-segment.ts';

export interface EndedConnections {
  /** Network namespace of the channels. */
  readonly namespacePath: string;
  readonly device: string;
  readonly guestIp: string;
  readonly connections: readonly GuestConnection[];
}

/**
 * Resets connections between a guest and the service's address that this host does not have. A
 * migrated guest brings them along and would wait for answers that never come.
 */
export function endConnections(ended: EndedConnections): void {
  const { namespacePath, device, guestIp, connections } = ended;
  for (const from of [SERVICE_IPV4, SERVICE_IPV6]) {
    const segments = connections.flatMap(({ port, guestPort, guestIpv6 }) => {
      if ((guestIpv6 !== null) !== (from === SERVICE_IPV6)) return [];
      const to = guestIpv6 ?? guestIp;
      const [own, theirs] = [addressBytes(from), addressBytes(to)];
      const bytes = encodeSyn({ address: own, port }, { address: theirs, port: guestPort });
      return [{ to, bytes }];
    });
    if (segments.length > 0)
      inNetworkNamespace(namespacePath, () => sendTcpSegments(device, from, segments));
  }
}
