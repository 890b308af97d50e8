import type { NetworkRecord } from '#shared/contract/network.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** The fields of a network that decide which addresses instances may have. */
export type AddressPool = Pick<NetworkRecord, 'name' | 'network' | 'gateway' | 'reserved'>;

interface Range {
  /** The network's own address. */
  readonly first: number;
  /** Its broadcast address. */
  readonly last: number;
}

/** Returns the first and last address as numbers. @param network for example `10.9.0.0/24` */
export function rangeOf(network: string): Range {
  const [address = '', prefix = ''] = network.split('/');
  const first = encode(address);
  return { first, last: first + 2 ** (32 - Number(prefix)) - 1 };
}

/** Returns the number of addresses without the network's own and its broadcast address. */
export function sizeOf({ network }: Pick<AddressPool, 'network'>): number {
  const { first, last } = rangeOf(network);
  return last - first - 1;
}

/**
 * Returns the number of addresses that an instance could get now.
 * @param taken addresses of instances, each once
 */
export function countFree(pool: AddressPool, taken: ReadonlySet<string>): number {
  const { first, last } = rangeOf(pool.network);
  const used = new Set([...taken, ...heldBack(pool)].map(encode));
  return sizeOf(pool) - [...used].filter((address) => address > first && address < last).length;
}

/**
 * Returns a character per address, as Ganeti shows them: `X` for a used or reserved one, else `.`.
 */
export function drawMap(pool: AddressPool, taken: readonly string[]): string {
  const { first, last } = rangeOf(pool.network);
  const drawn = Buffer.alloc(last - first + 1, '.');
  for (const address of [first, last, ...[...heldBack(pool), ...taken].map(encode)])
    if (address >= first && address <= last) drawn.write('X', address - first);
  return drawn.toString('latin1');
}

/** Returns the lowest free address; undefined if there is none. */
export function firstFree(pool: AddressPool, taken: ReadonlySet<string>): string | undefined {
  const { first, last } = rangeOf(pool.network);
  const held = new Set(heldBack(pool));
  for (let address = first + 1; address < last; address += 1) {
    const text = decode(address);
    if (!held.has(text) && !taken.has(text)) return text;
  }
  return undefined;
}

/**
 * @throws AppError VALIDATION if no instance may have it; whether an instance has it now does not
 * matter
 */
export function requireUsable(pool: AddressPool, ip: string): void {
  const fault = faultOf(pool, ip);
  if (fault === null) return;
  throw new AppError('VALIDATION', `${ip} ${fault}`, {
    details: { network: pool.name, ip },
    hint: `ip=pool chooses a free address. List the used ones: gnt-network info ${pool.name}`,
  });
}

/** @throws AppError VALIDATION: the address is outside the network, or not a host address */
export function requireHost(pool: Pick<AddressPool, 'name' | 'network'>, ip: string): void {
  const fault = faultOf({ ...pool, gateway: null, reserved: [] }, ip);
  if (fault !== null) throw new AppError('VALIDATION', `${ip} ${fault}`);
}

/** @throws AppError VALIDATION: the network has no gateway address for its nodes */
export function requireGateway({ name, gateway }: Pick<AddressPool, 'name' | 'gateway'>): void {
  if (gateway !== null) return;
  throw new AppError('VALIDATION', `network '${name}' has no gateway, but mode nat needs one`, {
    hint: `Set one: gnt-network modify --gateway ADDRESS ${name}`,
  });
}

export function overlap(one: string, other: string): boolean {
  const [a, b] = [rangeOf(one), rangeOf(other)];
  return a.first <= b.last && b.first <= a.last;
}

/** Compares addresses as numbers, not as text. */
export function compareAddresses(one: string, other: string): number {
  return encode(one) - encode(other);
}

function faultOf({ name, network, gateway, reserved }: AddressPool, ip: string): string | null {
  const { first, last } = rangeOf(network);
  const address = encode(ip);
  if (!(address >= first && address <= last)) return `is not in network '${name}' (${network})`;
  if (decode(address) !== ip) return `must be written as ${decode(address)}`;
  if (address === first) return `is the address of network '${name}' itself`;
  if (address === last) return `is the broadcast address of network '${name}'`;
  if (ip === gateway) return `is the gateway of network '${name}'`;
  return reserved.includes(ip) ? `is reserved in network '${name}'` : null;
}

function heldBack({ gateway, reserved }: AddressPool): readonly string[] {
  return gateway === null ? reserved : [...reserved, gateway];
}

/** Returns the address as a number; NaN for other text. */
function encode(ip: string): number {
  const parts = ip.split('.');
  return parts.length === 4 ? parts.reduce((sum, part) => sum * 256 + Number(part), 0) : NaN;
}

function decode(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');
}
