import type { GuestConnection } from '#shared/contract/guest-handover.ts';
import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import { addressBytes, inNetworkNamespace, sendTcpSegments } from '#shared/sys/network-sockets.ts';

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

/** RFC 9293, 3.1. */
const HEADER_BYTES = 20;
const PROTOCOL = 6;
const SYN = 0x02;

interface TcpEnd {
  /** 4 or 16 bytes. */
  readonly address: Buffer;
  readonly port: number;
}

/**
 * Encodes a SYN for a connection that only the peer still has. The peer answers with a challenge
 * ACK (RFC 5961, 4). This host's kernel does not know the connection and answers with a matching
 * reset.
 */
function encodeSyn(from: TcpEnd, to: TcpEnd): Buffer {
  const segment = Buffer.alloc(HEADER_BYTES);
  segment.writeUInt16BE(from.port, 0);
  segment.writeUInt16BE(to.port, 2);
  segment.writeUInt8((HEADER_BYTES / 4) << 4, 12);
  segment.writeUInt8(SYN, 13);
  const pseudoHeader = Buffer.alloc(4);
  pseudoHeader.writeUInt8(PROTOCOL, 1);
  pseudoHeader.writeUInt16BE(HEADER_BYTES, 2);
  const summed = Buffer.concat([from.address, to.address, pseudoHeader, segment]);
  segment.writeUInt16BE(checksumOf(summed), 16);
  return segment;
}

/** RFC 1071, over an even number of bytes. */
function checksumOf(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
