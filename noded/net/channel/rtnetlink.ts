import { constants } from 'node:os';
import { getSystemErrorMessage } from 'node:util';
import { createRtNetlink, FlagsNew, formatAttribute, pad, parseAttributes, rt } from 'netlink';
import type { RtNetlinkSocket } from 'netlink';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { addressBytes } from '#shared/sys/network-sockets.ts';

/** A kernel under load answers in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_BRIDGE = 7;
const MAIN_TABLE = 254;
/** linux/if_link.h */
const IFLA_PROP_LIST = 52;
const IFLA_ALT_IFNAME = 53;
/** Attributes of IFLA_LINKINFO. */
const IFLA_INFO_KIND = 1;
const IFLA_INFO_DATA = 2;
/** Since Linux 6.7. Older kernels ignore it. */
const IFLA_BR_FDB_MAX_LEARNED = 49;

export interface Link {
  readonly index: number;
  readonly name: string;
  readonly isUp: boolean;
  /** Bridge that the link is a port of. */
  readonly masterIndex: number | undefined;
  readonly alternatives: readonly string[];
}

export interface Ipv4Address {
  readonly address: string;
  readonly prefixLength: number;
}

/**
 * Changes the links of the host, with a socket for this work.
 * @throws AppError NETWORK_SETUP: `cannot <activity>: <reason>`
 */
export async function withHostLinks<T>(
  activity: string,
  work: (netlink: RouteNetlink) => Promise<T>,
): Promise<T> {
  try {
    await using netlink = new RouteNetlink();
    return await work(netlink);
  } catch (error) {
    if (isAppError(error)) throw error;
    throw new AppError('NETWORK_SETUP', `cannot ${activity}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Error answer of the kernel, with `code` as in Node's system errors (`EEXIST`). */
class NetlinkError extends Error {
  readonly code: string;

  constructor(request: string, code: string, cause: unknown) {
    super(`${request}: ${describe(code)}`, { cause });
    this.code = code;
  }
}

/**
 * Changes links, addresses, routes and neighbours of the network namespace in which it was made.
 *
 * INVARIANTS: one request at a time, because the library mixes up concurrent dumps and an overflow
 * of the receive buffer aborts the process. No multicast groups, for the same reason: without them
 * 12,000 events of links in 60 s without a read left the socket usable, with them the process
 * aborted. The kernel stops a dump at half of the buffer (netlink_recvmsg).
 */
export class RouteNetlink implements AsyncDisposable {
  readonly #socket: RtNetlinkSocket;
  readonly #queue = new SerialQueue<'socket'>();
  #broken: Error | undefined;
  #closed = false;

  /** Call it inside the intended namespace; the socket stays there. */
  constructor() {
    this.#socket = createRtNetlink();
    this.#socket.socket.on('error', (error) => {
      this.#broken = error;
    });
  }

  /** False after an error of the socket itself: create a new instance. */
  get isUsable(): boolean {
    return this.#broken === undefined && !this.#closed;
  }

  async listLinks(): Promise<readonly Link[]> {
    const links = await this.#request('list links', (options) =>
      this.#socket.getLinks({}, {}, options),
    );
    return links.flatMap(parseLink);
  }

  async findLink(name: string): Promise<Link | undefined> {
    try {
      return await this.requireLink(name);
    } catch (error) {
      if (error instanceof NetlinkError && error.code === 'ENODEV') return undefined;
      throw error;
    }
  }

  /** @throws NetlinkError ENODEV */
  async requireLink(name: string): Promise<Link> {
    const request = `find link ${name}`;
    const links = await this.#request(request, (options) =>
      this.#socket.getLink({}, { ifname: name }, options),
    );
    // The kernel also finds links by alternative names.
    const link = links.flatMap(parseLink).find((one) => one.name === name);
    if (!link) throw new NetlinkError(request, 'ENODEV', undefined);
    return link;
  }

  async addBridge(name: string, mac: string): Promise<void> {
    const linkinfo = encodeAttribute(IFLA_INFO_KIND, Buffer.from('bridge\0'));
    await this.#request(`add bridge ${name}`, (options) =>
      this.#socket.newLink(
        {},
        { ifname: name, address: encodeMac(mac), linkinfo },
        { ...options, flags: FlagsNew.CREATE | FlagsNew.EXCL },
      ),
    );
  }

  async setLinkUp(index: number): Promise<void> {
    await this.#request('set link up', (options) =>
      this.#socket.setLink({ index, change: { up: true }, flags: { up: true } }, {}, options),
    );
  }

  /** Makes a link a port of a bridge. @param mac hardware address of the port, if it changes */
  async enslaveLink(index: number, bridgeIndex: number, mac?: string): Promise<void> {
    const address = mac === undefined ? {} : { address: encodeMac(mac) };
    await this.#request('set link master', (options) =>
      this.#socket.setLink({ index }, { master: bridgeIndex, ...address }, options),
    );
  }

  async setHardwareAddress(index: number, mac: string): Promise<void> {
    await this.#request('set link address', (options) =>
      this.#socket.setLink({ index }, { address: encodeMac(mac) }, options),
    );
  }

  async deleteLink(index: number): Promise<void> {
    await this.#request('delete link', (options) => this.#socket.delLink({ index }, {}, options));
  }

  async changeAlternativeName(
    change: 'add' | 'remove',
    index: number,
    name: string,
  ): Promise<void> {
    const { NEWLINKPROP, DELLINKPROP } = rt.MessageType;
    const [type, flags] =
      change === 'add' ? [NEWLINKPROP, FlagsNew.CREATE | FlagsNew.EXCL] : [DELLINKPROP, 0];
    const alternative = encodeAttribute(IFLA_ALT_IFNAME, Buffer.from(`${name}\0`));
    // The library encodes IFLA_PROP_LIST without the flag of nested attributes.
    const message = [rt.formatLink({ index }), encodeAttribute(IFLA_PROP_LIST, alternative, true)];
    await this.#request(`${change} alternative name ${name}`, (options) =>
      this.#socket.request(type, message, { ...options, flags }),
    );
  }

  async listIpv4Addresses(index: number): Promise<readonly Ipv4Address[]> {
    const found = await this.#request('list addresses', (options) =>
      this.#socket.getAddresses({ family: AF_INET }, {}, options),
    );
    return found.flatMap(({ data, attrs }) =>
      data.index !== index || data.prefixlen === undefined || attrs.local === undefined
        ? []
        : [{ address: attrs.local.join('.'), prefixLength: data.prefixlen }],
    );
  }

  /** Looks up the route to an IPv4 address. @throws NetlinkError ENETUNREACH */
  async findRoute(
    address: string,
  ): Promise<{ readonly device: string | undefined; readonly gateway: string | undefined }> {
    const [route] = await this.#request(`find route to ${address}`, (options) =>
      this.#socket.getRoute(
        { family: AF_INET, dstLen: 32 },
        { dst: addressBytes(address) },
        options,
      ),
    );
    const links = await this.listLinks();
    return {
      device: links.find(({ index }) => index === route?.attrs.oif)?.name,
      gateway: route?.attrs.gateway?.join('.'),
    };
  }

  /**
   * Adds an address unless it exists. IPv6 addresses are usable at once, without duplicate address
   * detection.
   */
  async ensureAddress(index: number, address: string, prefixLength: number): Promise<void> {
    const bytes = addressBytes(address);
    const isV6 = address.includes(':');
    await ignoring(
      'EEXIST',
      this.#request(`add address ${address}`, (options) =>
        this.#socket.newAddress(
          {
            family: isV6 ? AF_INET6 : AF_INET,
            prefixlen: prefixLength,
            index,
            flags: isV6 ? { nodad: true } : {},
          },
          { local: bytes, address: bytes },
          { ...options, flags: FlagsNew.CREATE | FlagsNew.EXCL },
        ),
      ),
    );
  }

  /**
   * Sets the IPv4 route `<destination> dev <link> scope link src <source>`, replacing another route
   * to it.
   */
  async replaceHostRoute(index: number, destination: string, source: string): Promise<void> {
    await this.#request(`route ${destination}`, (options) =>
      this.#socket.newRoute(
        {
          family: AF_INET,
          dstLen: 32,
          table: MAIN_TABLE,
          protocol: 'STATIC',
          scope: 'LINK',
          type: 'UNICAST',
        },
        { dst: addressBytes(destination), oif: index, prefsrc: addressBytes(source) },
        { ...options, flags: FlagsNew.CREATE | FlagsNew.REPLACE },
      ),
    );
  }

  /** Sets an IPv4 neighbour that ARP replies cannot change. */
  async replacePermanentNeighbour(index: number, address: string, mac: string): Promise<void> {
    await this.#request(`neighbour ${address}`, (options) =>
      this.#socket.newNeighbor(
        { family: AF_INET, ifindex: index, state: { permanent: true } },
        { dst: addressBytes(address), lladdr: encodeMac(mac) },
        { ...options, flags: FlagsNew.CREATE | FlagsNew.REPLACE },
      ),
    );
  }

  /** Forwards frames to a MAC through one port of a bridge, whatever the bridge learns. */
  async replaceForwarding(index: number, mac: string): Promise<void> {
    await this.#request(`forwarding entry ${mac}`, (options) =>
      this.#socket.newNeighbor(
        { family: AF_BRIDGE, ifindex: index, state: { noarp: true }, flags: { master: true } },
        { lladdr: encodeMac(mac) },
        { ...options, flags: FlagsNew.CREATE | FlagsNew.REPLACE },
      ),
    );
  }

  /** Limits the MACs that a bridge learns. Kernels before 6.7 have no limit. */
  async limitLearning(bridgeIndex: number, count: number): Promise<void> {
    const limit = Buffer.alloc(4);
    limit.writeUInt32LE(count);
    const linkinfo = Buffer.concat([
      encodeAttribute(IFLA_INFO_KIND, Buffer.from('bridge\0')),
      encodeAttribute(IFLA_INFO_DATA, encodeAttribute(IFLA_BR_FDB_MAX_LEARNED, limit)),
    ]);
    // RTM_SETLINK ignores IFLA_LINKINFO.
    await this.#request('limit learning', (options) =>
      this.#socket.newLink({ index: bridgeIndex }, { linkinfo }, options),
    );
  }

  async close(): Promise<void> {
    await this.#queue.run('socket', () => Promise.resolve());
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.socket.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #request<T>(name: string, send: (options: { timeout: number }) => Promise<T>): Promise<T> {
    return this.#queue.run('socket', async () => {
      if (this.#broken) throw new NetlinkError(name, 'EPIPE', this.#broken);
      try {
        return await send({ timeout: REQUEST_TIMEOUT_MS });
      } catch (error) {
        throw new NetlinkError(name, codeOf(error), error);
      }
    });
  }
}

/** The library puts codes only into its messages: "Request rejected: EEXIST". */
function codeOf(error: unknown): string {
  const message = messageOf(error);
  return (
    /\b(E[A-Z0-9]+)\b/.exec(message)?.[1] ?? (/timeout/i.test(message) ? 'ETIMEDOUT' : 'EPROTO')
  );
}

/** @returns `file already exists (EEXIST)` */
function describe(code: string): string {
  const number = Object.entries(constants.errno).find(([name]) => name === code)?.[1];
  return number === undefined ? code : `${getSystemErrorMessage(-number)} (${code})`;
}

async function ignoring(code: string, request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof NetlinkError) || error.code !== code) throw error;
  }
}

function encodeMac(mac: string): Buffer {
  return Buffer.from(mac.replaceAll(':', ''), 'hex');
}

/** @returns the attribute of netlink(7) with its padding */
function encodeAttribute(type: number, data: Buffer, nested = false): Buffer {
  return Buffer.concat(pad(formatAttribute({ type, data, nested })));
}

function parseLink({ data, attrs }: rt.LinkMessage): readonly Link[] {
  if (data.index === undefined || attrs.ifname === undefined) return [];
  return [
    {
      index: data.index,
      name: attrs.ifname,
      isUp: data.flags?.up === true,
      masterIndex: attrs.master,
      alternatives: attrs.propList ? parseAlternatives(attrs.propList) : [],
    },
  ];
}

function parseAlternatives(properties: Buffer): readonly string[] {
  const names: string[] = [];
  parseAttributes(properties, ({ type, data }) => {
    if (type === IFLA_ALT_IFNAME) names.push(data.toString('utf8').replace(/\0$/, ''));
  });
  return names;
}
