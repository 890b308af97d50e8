import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import type { BootUrls } from '../dialects/boot-paths.ts';
import { encodeDhcpReply, encodeIpv4, X64_HTTP } from './codec.ts';
import type { DhcpReply, DhcpRequest, Firmware } from './codec.ts';

export interface DhcpClient {
  readonly mac: string;
  readonly ip: string;
  readonly hostName: string;
  /** Whether the guest's name server is the metadata service. */
  readonly hasNameServer?: boolean;
  /** Boot URLs; null or absent without a boot environment. */
  readonly boot?: BootUrls | null;
}

export interface DhcpAnswer {
  readonly bytes: Buffer;
  /** Broadcast unless the client has its address already. */
  readonly destination: string;
}

const BROADCAST = '255.255.255.255';
const NO_ADDRESS = '0.0.0.0';
/**
 * 169.254.0.0/16 instead of /32: clients that ignore option 121 still reach the service, and
 * nothing else of that network answers on the link.
 */
const NETMASK = '255.255.0.0';
/**
 * The address never changes while the instance has its channel, so a lease may outlive long outages
 * of the service.
 */
const LEASE_S = 30 * 24 * 3600;
/**
 * 169.254.169.254/32 on the link itself. Without option 3 the channel never becomes a default
 * route.
 */
const CLASSLESS_ROUTE = Buffer.from([32, 169, 254, 169, 254, 0, 0, 0, 0]);

/** iPXE's own option, with its sub-option 176, `no-pxedhcp`. */
const NO_PROXY_DHCP = Buffer.from([0xb0, 1, 1]);

/** @returns null when the message needs no answer */
export function answerDhcp(client: DhcpClient, request: DhcpRequest): DhcpAnswer | null {
  if (request.mac !== client.mac || request.relayAddress !== NO_ADDRESS) return null;
  switch (request.type) {
    case 'discover':
      return answer(client, request, 'offer');
    case 'request':
      return answerRequest(client, request);
    case 'inform':
      return request.clientAddress === client.ip ? answer(client, request, 'ack') : null;
    case 'offer':
    case 'ack':
    case 'nak':
    case 'decline':
    case 'release':
      return null;
    default:
      return request.type satisfies never;
  }
}

function answerRequest(client: DhcpClient, request: DhcpRequest): DhcpAnswer | null {
  // The client took the offer of another server.
  if (request.serverIdentifier !== null && request.serverIdentifier !== SERVICE_IPV4) return null;
  const wanted =
    request.requestedAddress ??
    (request.clientAddress === NO_ADDRESS ? null : request.clientAddress);
  if (wanted === null) return null;
  return answer(client, request, wanted === client.ip ? 'ack' : 'nak');
}

function answer(client: DhcpClient, request: DhcpRequest, type: DhcpReply['type']): DhcpAnswer {
  const hasLease = type !== 'nak' && request.type !== 'inform';
  const bytes = encodeDhcpReply({
    type,
    request,
    yourAddress: hasLease ? client.ip : NO_ADDRESS,
    serverIdentifier: SERVICE_IPV4,
    options:
      type === 'nak'
        ? []
        : [
            ...(hasLease ? leaseOptions() : []),
            ...linkOptions(client),
            ...bootOptions(client.boot ?? null, request.firmware),
          ],
  });
  const isConfigured = type !== 'nak' && request.clientAddress === client.ip;
  return { bytes, destination: isConfigured ? client.ip : BROADCAST };
}

function leaseOptions(): readonly (readonly [number, Buffer])[] {
  return [
    [51, encodeUint32(LEASE_S)],
    [58, encodeUint32(LEASE_S / 2)],
    [59, encodeUint32((LEASE_S * 7) / 8)],
  ];
}

function linkOptions(client: DhcpClient): readonly (readonly [number, Buffer])[] {
  const hostName = client.hostName.split('.')[0] ?? '';
  return [
    [1, encodeIpv4(NETMASK)],
    [12, Buffer.from(hostName)],
    ...(client.hasNameServer === true ? ([[6, encodeIpv4(SERVICE_IPV4)]] as const) : []),
    [121, CLASSLESS_ROUTE],
  ];
}

/**
 * Sends iPXE in the ROM of QEMU's NIC to its script, and disables its wait for a proxy DHCP server,
 * which takes seconds. Sends EFI that boots by HTTP to its loader. Other clients get no boot
 * options, since some would load any file that is named.
 */
function bootOptions(
  boot: BootUrls | null,
  firmware: Firmware | null,
): readonly (readonly [number, Buffer])[] {
  if (boot === null || firmware === null) return [];
  if (firmware.vendorClass === 'HTTPClient') {
    if (boot.loader === null || firmware.architecture !== X64_HTTP) return [];
    return [
      [60, Buffer.from('HTTPClient')],
      [67, Buffer.from(boot.loader)],
    ];
  }
  if (!firmware.userClasses.includes('iPXE')) return [];
  return [
    [67, Buffer.from(boot.script)],
    [175, NO_PROXY_DHCP],
  ];
}

function encodeUint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
