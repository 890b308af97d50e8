import { randomBytes } from 'node:crypto';
import type { NetworkRecord } from '#shared/contract/network.ts';

/**
 * 169.254.1.0 to 169.254.254.255: RFC 3927 keeps the first and the last 256 addresses of
 * 169.254.0.0/16 for the future.
 */
const FIRST = 0x0100;
const LAST = 0xfeff;
/** 169.254.169.254, the metadata service. */
const SERVICE = 0xa9fe;

/**
 * Yields candidates for a channel address, cyclically after the last given one. A freed address is
 * thus reused as late as possible, when caches have forgotten it.
 * @param lastGiven dotted quad, or undefined for a new cluster
 */
export function* channelIpCandidates(lastGiven: string | undefined): Generator<string> {
  const start = lastGiven === undefined ? LAST : decode(lastGiven);
  for (let step = 1; step <= LAST - FIRST + 1; step += 1) {
    const host = FIRST + ((start - FIRST + step) % (LAST - FIRST + 1));
    if (host !== SERVICE) yield `169.254.${host >> 8}.${host & 0xff}`;
  }
}

function decode(ip: string): number {
  const [, , high = 0, low = 0] = ip.split('.').map(Number);
  const host = high * 256 + low;
  return host >= FIRST && host <= LAST ? host : LAST;
}

/** Draws a MAC with QEMU's prefix, which Ganeti's communication network uses, too. */
export function randomChannelMac(random: (bytes: number) => Buffer = randomBytes): string {
  return formatMac([0x52, 0x54, 0x00, ...random(3)]);
}

/** Ganeti's default prefix for ordinary NICs. */
const NIC_PREFIX = 'aa:00:00';

/** @param prefix first three bytes; a network may have its own */
export function randomNicMac(
  prefix = NIC_PREFIX,
  random: (bytes: number) => Buffer = randomBytes,
): string {
  return `${prefix}:${formatMac([...random(3)])}`;
}

/** Returns a function that draws MACs of NICs, with the prefixes of their networks. */
export function drawMacs(
  networks: readonly Pick<NetworkRecord, 'name' | 'macPrefix'>[],
): (networkName?: string) => string {
  return (networkName) => {
    const network = networks.find(({ name }) => name === networkName);
    return randomNicMac(network?.macPrefix ?? undefined);
  };
}

function formatMac(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
