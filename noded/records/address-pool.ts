import type { NetworkRecord } from '#shared/contract/network.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** The addresses of a network that instances may have. Pure. */
export type AddressPool = Pick<NetworkRecord, 'name' | 'network' | 'gateway' | 'reserved'>;

interface Range {
  /** The network's own address. */
  readonly first: number;
  /** Its broadcast address. */
  readonly last: number;
}

/** @param network `10.9.0.0/24` */
export function rangeOf(network: string): Range {
  const [address = '', prefix = ''] = network.split('/');
  const first = encode(address);
  return { first, last: first + 2 ** (32 - Number(prefix)) - 1 };
}

/** Addresses that are neither the network's own nor its broadcast address. */
export function sizeOf({ network }: Pick<AddressPool, 'network'>): number {
  const { first, last } = rangeOf(network);
  return last - first - 1;
}

/** How many an instance could get now. @param taken what instances have, each once */
export function countFree(pool: AddressPool, taken: ReadonlySet<string>): number {
  const { first, last } = rangeOf(pool.network);
  const used = new Set([...taken, ...heldBack(pool)].map(encode));
  return sizeOf(pool) - [...used].filter((address) => address > first && address < last).length;
}

/**
 * A character for each address, as Ganeti draws it: `X` for one that nobody else gets, else `.`.
 */
export function drawMap(pool: AddressPool, taken: readonly string[]): string {
  const { first, last } = rangeOf(pool.network);
  const drawn = Buffer.alloc(last - first + 1, '.');
  for (const address of [first, last, ...[...heldBack(pool), ...taken].map(encode)])
    if (address >= first && address <= last) drawn.write('X', address - first);
  return drawn.toString('latin1');
}

/** The lowest that is free; undefined when there is none. */
export function firstFree(pool: AddressPool, taken: ReadonlySet<string>): string | undefined {
  const { first, last } = rangeOf(pool.network);
  const held = new Set(heldBack(pool));
  for (let address = first + 1; address < last; address += 1) {
    const text = decode(address);
    if (!held.has(text) && !taken.has(text)) return text;
  }
  return undefined;
}

/** @throws AppError VALIDATION when an instance cannot have it, whoever has it now */
export function requireUsable(pool: AddressPool, ip: string): void {
  const fault = faultOf(pool, ip);
  if (fault === null) return;
  throw new AppError('VALIDATION', `${ip} ${fault}`, {
    details: { network: pool.name, ip },
    hint: `ip=pool chooses a free address. List the used ones: gnt-network info ${pool.name}`,
  });
}

/** @throws AppError VALIDATION: it is not of the network, or none of its hosts */
export function requireHost(pool: Pick<AddressPool, 'name' | 'network'>, ip: string): void {
  const fault = faultOf({ ...pool, gateway: null, reserved: [] }, ip);
  if (fault !== null) throw new AppError('VALIDATION', `${ip} ${fault}`);
}

/** @throws AppError VALIDATION: no node can be the gateway that it has not */
export function requireGateway({ name, gateway }: Pick<AddressPool, 'name' | 'gateway'>): void {
  if (gateway !== null) return;
  throw new AppError('VALIDATION', `network '${name}' has no gateway, but mode nat needs one`, {
    hint: `Set one: gnt-network modify --gateway ADDRESS ${name}`,
  });
}

/** Whether two networks have an address in common. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [rangeOf(one), rangeOf(other)];
  return a.first <= b.last && b.first <= a.last;
}

/** The order of numbers, not of letters. */
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

/** The address as a number; NaN for what is none. */
function encode(ip: string): number {
  const parts = ip.split('.');
  return parts.length === 4 ? parts.reduce((sum, part) => sum * 256 + Number(part), 0) : NaN;
}

function decode(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');
}
