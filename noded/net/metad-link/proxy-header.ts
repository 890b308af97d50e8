import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { addressBytes } from '#shared/sys/network-sockets.ts';

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const VERSION_2_PROXY = 0x21;
const TCP_OVER_IPV4 = 0x11;
const TLV_AUTHORITY = 0x02;
const TLV_UNIQUE_ID = 0x05;

export interface ProxiedInstance {
  readonly name: string;
  readonly uuid: string;
  /** In the channel. */
  readonly ip: string;
}

/**
 * Encodes a header of the PROXY protocol, version 2: source is the instance's IPv4 address in the
 * channel (also for IPv6 connections), destination the service's address. The authority is the
 * instance's name, the unique id its UUID.
 * @see https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt
 */
export function proxyHeader(
  instance: ProxiedInstance,
  sourcePort: number,
  servicePort: number,
): Buffer {
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(sourcePort, 0);
  ports.writeUInt16BE(servicePort, 2);
  const body = Buffer.concat([
    addressBytes(instance.ip),
    addressBytes(SERVICE_IPV4),
    ports,
    tlv(TLV_AUTHORITY, instance.name),
    tlv(TLV_UNIQUE_ID, instance.uuid),
  ]);
  const head = Buffer.from([VERSION_2_PROXY, TCP_OVER_IPV4, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([SIGNATURE, head, body]);
}

function tlv(type: number, text: string): Buffer {
  const value = Buffer.from(text, 'utf8');
  return Buffer.concat([Buffer.from([type, value.length >> 8, value.length & 0xff]), value]);
}
