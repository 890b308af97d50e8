/**
 * Encodes Ethernet frames byte by byte, so that a test can send frames that no normal stack would.
 * Addresses are strings.
 */

export const BROADCAST_MAC = 'ff:ff:ff:ff:ff:ff';

export interface Ethernet {
  readonly from: string;
  readonly to: string;
}

const mac = (text: string): Buffer => Buffer.from(text.replaceAll(':', ''), 'hex');
const ipv4 = (text: string): Buffer => Buffer.from(text.split('.').map(Number));

export function ipv6(text: string): Buffer {
  const [head = '', tail = ''] = text.split('::');
  const left = head.split(':').filter(Boolean);
  const right = tail.split(':').filter(Boolean);
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  const hex = [...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join('');
  return Buffer.from(hex, 'hex');
}

function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  values.forEach((value, index) => bytes.writeUInt16BE(value, index * 2));
  return bytes;
}

/** RFC 1071 */
function checksum(...parts: readonly Buffer[]): number {
  const bytes = Buffer.concat(parts);
  let sum = 0;
  for (let index = 0; index < bytes.length; index += 2) {
    sum += (bytes[index] ?? 0) * 256 + (bytes[index + 1] ?? 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

export function ethernet(link: Ethernet, type: number, payload: Buffer): Buffer {
  return Buffer.concat([mac(link.to), mac(link.from), u16(type), payload]);
}

export interface Arp {
  readonly operation: 'request' | 'reply';
  readonly senderMac: string;
  readonly senderIp: string;
  readonly targetIp: string;
}

export function arp(link: Ethernet, body: Arp): Buffer {
  const operation = body.operation === 'request' ? 1 : 2;
  const payload = Buffer.concat([
    u16(1, 0x0800, 0x0604, operation),
    mac(body.senderMac),
    ipv4(body.senderIp),
    Buffer.alloc(6),
    ipv4(body.targetIp),
  ]);
  return ethernet(link, 0x0806, payload);
}

export interface Ip {
  readonly source: string;
  readonly destination: string;
  /** IPv4 options, a multiple of 4 bytes. */
  readonly options?: Buffer;
}

function ipv4Packet(ip: Ip, protocol: number, payload: Buffer): Buffer {
  const options = ip.options ?? Buffer.alloc(0);
  const headerBytes = 20 + options.length;
  const header = Buffer.concat([
    Buffer.from([0x40 | (headerBytes / 4), 0]),
    u16(headerBytes + payload.length, 1, 0x4000),
    Buffer.from([64, protocol]),
    u16(0),
    ipv4(ip.source),
    ipv4(ip.destination),
    options,
  ]);
  header.writeUInt16BE(checksum(header), 10);
  return Buffer.concat([header, payload]);
}

function ipv6Packet(ip: Ip, nextHeader: number, payload: Buffer, hopLimit: number): Buffer {
  return Buffer.concat([
    Buffer.from([0x60, 0, 0, 0]),
    u16(payload.length),
    Buffer.from([nextHeader, hopLimit]),
    ipv6(ip.source),
    ipv6(ip.destination),
    payload,
  ]);
}

/** Wraps a transport payload whose checksum is at `checksumAt`. */
function packet(
  link: Ethernet,
  ip: Ip,
  protocol: number,
  body: Buffer,
  checksumAt: number,
  hopLimit = 64,
): Buffer {
  const isV6 = ip.source.includes(':');
  const address = isV6 ? ipv6 : ipv4;
  const pseudo = Buffer.concat([
    address(ip.source),
    address(ip.destination),
    isV6 ? u16(0, body.length, 0, protocol) : u16(protocol, body.length),
  ]);
  const isIcmp4 = protocol === 1;
  body.writeUInt16BE(checksum(...(isIcmp4 ? [body] : [pseudo, body])), checksumAt);
  return isV6
    ? ethernet(link, 0x86dd, ipv6Packet(ip, protocol, body, hopLimit))
    : ethernet(link, 0x0800, ipv4Packet(ip, protocol, body));
}

export type TcpFlag = 'syn' | 'syn-ack' | 'ack';

export function tcp(
  link: Ethernet,
  ip: Ip,
  ports: { readonly from: number; readonly to: number },
  flag: TcpFlag,
  acknowledged = 0,
): Buffer {
  const flags = { syn: 0x02, 'syn-ack': 0x12, ack: 0x10 }[flag];
  const header = Buffer.alloc(20);
  header.writeUInt16BE(ports.from, 0);
  header.writeUInt16BE(ports.to, 2);
  header.writeUInt32BE(1000, 4);
  header.writeUInt32BE(acknowledged, 8);
  header.writeUInt16BE(0x5000 | flags, 12);
  header.writeUInt16BE(64_000, 14);
  return packet(link, ip, 6, header, 16);
}

export function udp(
  link: Ethernet,
  ip: Ip,
  ports: { readonly from: number; readonly to: number },
  payload: string,
): Buffer {
  const data = Buffer.from(payload);
  const header = u16(ports.from, ports.to, 8 + data.length, 0);
  return packet(link, ip, 17, Buffer.concat([header, data]), 6);
}

export function ping(link: Ethernet, ip: Ip, sequence: number): Buffer {
  const isV6 = ip.source.includes(':');
  const body = Buffer.concat([Buffer.from([isV6 ? 128 : 8, 0]), u16(0, 0x6e74, sequence)]);
  return packet(link, ip, isV6 ? 58 : 1, body, 2);
}

/** ICMP of any kind: type, code, then the body after the checksum. */
export function icmp(link: Ethernet, ip: Ip, type: number, code: number, rest: Buffer): Buffer {
  const isV6 = ip.source.includes(':');
  const body = Buffer.concat([Buffer.from([type, code]), u16(0), rest]);
  // Neighbour discovery counts only with this hop limit (RFC 4861).
  return packet(link, ip, isV6 ? 58 : 1, body, 2, 255);
}

const sourceLinkOption = (text: string): Buffer => Buffer.concat([Buffer.from([1, 1]), mac(text)]);
const targetLinkOption = (text: string): Buffer => Buffer.concat([Buffer.from([2, 1]), mac(text)]);

export function neighbourSolicitation(link: Ethernet, ip: Ip, target: string): Buffer {
  const option = ip.source === '::' ? Buffer.alloc(0) : sourceLinkOption(link.from);
  return icmp(link, ip, 135, 0, Buffer.concat([Buffer.alloc(4), ipv6(target), option]));
}

export function neighbourAdvertisement(link: Ethernet, ip: Ip, target: string): Buffer {
  const override = Buffer.from([0x20, 0, 0, 0]);
  const rest = Buffer.concat([override, ipv6(target), targetLinkOption(link.from)]);
  return icmp(link, ip, 136, 0, rest);
}

/** A router for everything, with a prefix to make an address of. */
export function routerAdvertisement(link: Ethernet, ip: Ip, prefix: string): Buffer {
  const timers = Buffer.alloc(8);
  const prefixOption = Buffer.concat([
    Buffer.from([3, 4, 64, 0xc0]),
    Buffer.from('00015180 00003840 00000000'.replaceAll(' ', ''), 'hex'),
    ipv6(prefix),
  ]);
  const rest = Buffer.concat([Buffer.from([64, 0]), u16(1800), timers, prefixOption]);
  return icmp(link, ip, 134, 0, rest);
}

/** Fields of a received frame. */
export interface Seen {
  readonly to: string;
  readonly from: string;
  readonly kind: 'arp' | 'tcp' | 'udp' | 'icmp' | 'icmpv6' | 'other';
  readonly source: string;
  readonly destination: string;
  /** ARP operation, TCP flags or ICMP type. */
  readonly detail: number;
  readonly sequence: number;
  readonly ports: readonly [number, number];
}

const colons = (bytes: Buffer): string => bytes.toString('hex').replaceAll(/(..)(?=.)/g, '$1:');
const dots = (bytes: Buffer): string => [...bytes].join('.');

export function describeFrame(frame: Buffer): Seen {
  const base = { to: colons(frame.subarray(0, 6)), from: colons(frame.subarray(6, 12)) };
  const none = {
    ...base,
    source: '',
    destination: '',
    detail: 0,
    sequence: 0,
    ports: [0, 0] as const,
  };
  const type = frame.readUInt16BE(12);
  if (type === 0x0806) {
    const [source, destination] = [dots(frame.subarray(28, 32)), dots(frame.subarray(38, 42))];
    return { ...none, kind: 'arp', source, destination, detail: frame.readUInt16BE(20) };
  }
  if (type !== 0x0800 && type !== 0x86dd) return { ...none, kind: 'other' };
  const isV6 = type === 0x86dd;
  const addresses = isV6
    ? { source: colons(frame.subarray(22, 38)), destination: colons(frame.subarray(38, 54)) }
    : { source: dots(frame.subarray(26, 30)), destination: dots(frame.subarray(30, 34)) };
  const protocol = frame.readUInt8(isV6 ? 20 : 23);
  const body = frame.subarray(isV6 ? 54 : 14 + (frame.readUInt8(14) & 0x0f) * 4);
  if (protocol === 6) {
    const ports = [body.readUInt16BE(0), body.readUInt16BE(2)] as const;
    return {
      ...none,
      ...addresses,
      kind: 'tcp',
      detail: body.readUInt8(13),
      ports,
      sequence: body.readUInt32BE(4),
    };
  }
  if (protocol === 17) {
    return {
      ...none,
      ...addresses,
      kind: 'udp',
      ports: [body.readUInt16BE(0), body.readUInt16BE(2)],
    };
  }
  if (protocol !== 1 && protocol !== 58) return { ...none, ...addresses, kind: 'other' };
  const sequence = body.length >= 8 ? body.readUInt16BE(6) : 0;
  return {
    ...none,
    ...addresses,
    kind: isV6 ? 'icmpv6' : 'icmp',
    detail: body.readUInt8(0),
    sequence,
  };
}
