import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { inNetworkNamespace, openTap as openTapDevice } from '#shared/sys/network-sockets.ts';
import {
  applySysctls,
  hasIpv6,
  planDeviceSysctls,
  planNamespaceSysctls,
  planServicePortSysctls,
} from './namespace-sysctls.ts';
import {
  deleteNetworkNamespace,
  ensureNetworkNamespace,
  namespacePathOf,
  networkNamespaceExists,
} from './network-namespace.ts';
import {
  type ChannelGuest,
  planBaseRules,
  planServicePorts,
  planTapRules,
  planTapRulesRemoval,
  type ServicePorts,
} from './nft-rules.ts';
import { applyNftCommands } from './nft.ts';
import { RouteNetlink } from './rtnetlink.ts';

const TAP_PREFIX = 'gnt.com.';
const TAP_PATTERN = /^gnt\.com\.(0|[1-9]\d{0,6})$/;
/**
 * Host side of every channel. It is the same on all nodes, because a migrated guest keeps the
 * hardware address in its ARP cache.
 */
const HOST_MAC = '02:67:6e:74:00:01';
/** Addresses in a /16, which limit the number of channels. */
const MAX_TAPS = 65_536;

export interface ChannelTap {
  /** `gnt.com.N` in the channel's namespace, or `gnt…` in the host's for a bridged TAP. */
  readonly device: string;
  /** Pass it to QEMU, then close(). The TAP exists as long as a process holds its descriptor. */
  readonly fd: number;
  /** Closes this process's descriptor. Idempotent. */
  close(): void;
}

/**
 * Manages the node's side of the channel: one namespace, and one TAP with its own packet filter per
 * instance. Calls are serialised.
 */
export interface ChannelNetwork {
  /** `/run/netns/<name>`, for processes that enter the namespace. */
  readonly namespacePath: string;
  /**
   * Creates the namespace with lo, sysctls and the nftables base rules. Keeps existing TAPs and
   * their rules. Idempotent.
   */
  ensureNamespace(): Promise<void>;
  /**
   * Creates the first free gnt.com.N, ready for a guest. Its name stays reserved until releaseTap,
   * even after its QEMU process exited, so that a late release cannot hit a successor. Undoes
   * itself on failure.
   * @throws AppError NETWORK_SETUP, HOST_PREREQUISITE
   */
  openTap(guest: ChannelGuest): Promise<ChannelTap>;
  /**
   * Restores the configuration of a TAP whose QEMU process still runs after a restart of the
   * daemon, and reserves its name.
   */
  repairTap(device: string, guest: ChannelGuest): Promise<void>;
  /**
   * Removes the filter and leftovers of a TAP, and frees its name. Call it after the QEMU process
   * exited or failed to start. Idempotent.
   */
  releaseTap(device: string): Promise<void>;
  /** Lists the existing TAPs in order of their numbers. */
  listTaps(): Promise<readonly string[]>;
  /** Replaces the additional ports on the service's address that guests may reach. */
  setServicePorts(ports: ServicePorts): Promise<void>;
  /** Removes the namespace unless it has TAPs. @returns whether the namespace was removed */
  removeNamespace(): Promise<boolean>;
  close(): Promise<void>;
}

export interface ChannelNetworkOptions {
  readonly namespace: string;
  readonly logger: Logger;
}

export function createChannelNetwork(options: ChannelNetworkOptions): ChannelNetwork {
  return new NamespacedChannelNetwork(options);
}

/**
 * INVARIANTS: one operation at a time. A TAP is set up only after its rules are in place; without
 * them the base rules drop its packets. A name in #reserved is not used for another TAP.
 */
class NamespacedChannelNetwork implements ChannelNetwork {
  readonly namespacePath: string;
  readonly #name: string;
  readonly #logger: Logger;
  readonly #queue = new SerialQueue<'network'>();
  readonly #reserved = new Set<string>();
  readonly #withIpv6 = hasIpv6();
  #netlink: RouteNetlink | undefined;
  /** Undefined until setServicePorts: ports that an earlier daemon opened stay open. */
  #servicePorts: ServicePorts | undefined;

  constructor(options: ChannelNetworkOptions) {
    this.#name = options.namespace;
    this.namespacePath = namespacePathOf(options.namespace);
    this.#logger = options.logger;
  }

  ensureNamespace(): Promise<void> {
    return this.#exclusively('prepare the namespace', async () => {
      if (await ensureNetworkNamespace(this.#name)) {
        // A socket keeps the earlier namespace of this name alive.
        await this.#closeNetlink();
        this.#logger.info('network.namespace-created', { namespace: this.#name });
      }
      await this.#setSysctls(planNamespaceSysctls(['lo'], this.#withIpv6));
      const netlink = await this.#openNetlink();
      const loopback = await netlink.findLink('lo');
      if (loopback && !loopback.isUp) await netlink.setLinkUp(loopback.index);
      await this.#applyRules(planBaseRules());
      await this.#applyServicePorts();
    });
  }

  openTap(guest: ChannelGuest): Promise<ChannelTap> {
    return this.#exclusively('open a TAP', async () => {
      const { device, fd } = await this.#createDevice();
      this.#reserved.add(device);
      let isOpen = true;
      const close = (): void => {
        if (isOpen) closeFd(fd);
        isOpen = false;
      };
      try {
        await this.#setHostMac(device);
        await this.#configure(device, guest);
      } catch (error) {
        close();
        await this.#release(device).catch((second: unknown) => {
          this.#logger.warn('network.tap-undo-failed', { device, message: messageOf(second) });
        });
        throw error;
      }
      this.#logger.info('network.tap-opened', { device, ip: guest.ip, mac: guest.mac });
      return { device, fd, close };
    });
  }

  repairTap(device: string, guest: ChannelGuest): Promise<void> {
    assertTapName(device);
    return this.#exclusively(`repair ${device}`, async () => {
      this.#reserved.add(device);
      await this.#configure(device, guest);
    });
  }

  releaseTap(device: string): Promise<void> {
    assertTapName(device);
    return this.#exclusively(`release ${device}`, () => this.#release(device));
  }

  listTaps(): Promise<readonly string[]> {
    return this.#exclusively('list TAPs', () => this.#listTaps());
  }

  setServicePorts({ tcp, udp }: ServicePorts): Promise<void> {
    const sorted = { tcp: sortedOnce(tcp), udp: sortedOnce(udp) };
    return this.#exclusively('set service ports', async () => {
      this.#servicePorts = sorted;
      await this.#applyServicePorts();
    });
  }

  removeNamespace(): Promise<boolean> {
    return this.#exclusively('remove the namespace', async () => {
      if ((await this.#listTaps()).length > 0) return false;
      await this.#closeNetlink();
      await deleteNetworkNamespace(this.#name);
      return true;
    });
  }

  async close(): Promise<void> {
    await this.#queue.run('network', () => this.#closeNetlink());
  }

  /**
   * Creates a TAP with the first free name that is not reserved. Another process can take the name
   * in between; the next name is tried then.
   */
  async #createDevice(): Promise<{ device: string; fd: number }> {
    const taken = new Set([...(await this.#listTaps()), ...this.#reserved]);
    for (let number = 0; number < MAX_TAPS; number += 1) {
      const device = `${TAP_PREFIX}${number}`;
      if (taken.has(device)) continue;
      try {
        return { device, fd: inNetworkNamespace(this.namespacePath, () => openTapDevice(device)) };
      } catch (error) {
        if (systemCodeOf(error) !== 'EBUSY') throw explainTunError(error);
      }
    }
    throw new AppError('NETWORK_SETUP', `all ${MAX_TAPS} TAPs are in use`);
  }

  async #configure(device: string, guest: ChannelGuest): Promise<void> {
    const netlink = await this.#openNetlink();
    const link = await netlink.findLink(device);
    if (!link) throw new AppError('NETWORK_SETUP', `TAP ${device} does not exist`);
    await this.#setSysctls(planDeviceSysctls(device, this.#withIpv6));
    await this.#applyRules(planTapRules(device, guest));
    await netlink.ensureAddress(link.index, SERVICE_IPV4, 32);
    await netlink.setLinkUp(link.index);
    if (this.#withIpv6) await netlink.ensureAddress(link.index, SERVICE_IPV6, 64);
    await netlink.replaceHostRoute(link.index, guest.ip, SERVICE_IPV4);
    await netlink.replacePermanentNeighbour(link.index, guest.ip, guest.mac);
  }

  /** Sets the host's MAC before the guest learns another. */
  async #setHostMac(device: string): Promise<void> {
    const netlink = await this.#openNetlink();
    const link = await netlink.findLink(device);
    if (link) await netlink.setHardwareAddress(link.index, HOST_MAC);
  }

  async #release(device: string): Promise<void> {
    if (await networkNamespaceExists(this.#name)) {
      const netlink = await this.#openNetlink();
      const link = await netlink.findLink(device);
      if (link) {
        this.#logger.warn('network.tap-lingers', { device });
        await netlink.deleteLink(link.index);
      }
      await this.#applyRules(planTapRulesRemoval(device));
    }
    this.#reserved.delete(device);
    this.#logger.info('network.tap-released', { device });
  }

  async #listTaps(): Promise<readonly string[]> {
    if (!(await networkNamespaceExists(this.#name))) return [];
    const links = await (await this.#openNetlink()).listLinks();
    const numbers = links.flatMap(({ name }) => {
      const match = TAP_PATTERN.exec(name);
      return match ? [Number(match[1])] : [];
    });
    return numbers.sort((a, b) => a - b).map((number) => `${TAP_PREFIX}${number}`);
  }

  async #openNetlink(): Promise<RouteNetlink> {
    if (this.#netlink?.isUsable) return this.#netlink;
    await this.#closeNetlink();
    this.#netlink = inNetworkNamespace(this.namespacePath, () => new RouteNetlink());
    return this.#netlink;
  }

  async #closeNetlink(): Promise<void> {
    await this.#netlink?.close();
    this.#netlink = undefined;
  }

  async #setSysctls(settings: Readonly<Record<string, string>>): Promise<void> {
    inNetworkNamespace(this.namespacePath, () => applySysctls(settings));
  }

  async #applyServicePorts(): Promise<void> {
    if (this.#servicePorts === undefined) return;
    await this.#applyRules(planServicePorts(this.#servicePorts));
    const { tcp, udp } = this.#servicePorts;
    await this.#setSysctls(planServicePortSysctls(sortedOnce([...tcp, ...udp])));
  }

  #applyRules(commands: string): Promise<void> {
    return applyNftCommands(this.namespacePath, commands);
  }

  async #exclusively<T>(activity: string, body: () => Promise<T>): Promise<T> {
    return this.#queue.run('network', async () => {
      try {
        return await body();
      } catch (error) {
        if (isAppError(error, 'HOST_PREREQUISITE') || isAppError(error, 'NETWORK_SETUP'))
          throw error;
        throw new AppError(
          'NETWORK_SETUP',
          `cannot ${activity} in network namespace ${this.#name}: ${messageOf(error)}`,
          { cause: error },
        );
      }
    });
  }
}

function sortedOnce(ports: readonly number[]): readonly number[] {
  return [...new Set(ports)].sort((a, b) => a - b);
}

function assertTapName(device: string): void {
  if (!TAP_PATTERN.test(device)) throw new Error(`not a TAP of the channel: ${device}`);
}

/** Converts failures of /dev/net/tun that the operator can fix. */
export function explainTunError(error: unknown): unknown {
  const code = systemCodeOf(error);
  if (code === 'ENOENT' || code === 'ENODEV' || code === 'ENXIO') {
    return new AppError('HOST_PREREQUISITE', '/dev/net/tun does not exist', {
      hint: 'Load the tun module: modprobe tun',
      cause: error,
    });
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return new AppError('HOST_PREREQUISITE', `cannot use /dev/net/tun: ${messageOf(error)}`, {
      hint: 'Run gnt-noded as root.',
      cause: error,
    });
  }
  return error;
}
