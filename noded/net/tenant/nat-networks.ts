import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { every } from '#shared/clock/every.ts';
import type { ReachPolicy } from '#shared/contract/guest-reach.ts';
import { networkGuest, type NetworkGuest, type NetworkRecord } from '#shared/contract/network.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { type MachineUsers, requireMachineUsers } from '../../host/machine-users.ts';
import { openBridgedTap } from '../channel/bridged-tap.ts';
import type { Link } from '../channel/rtnetlink.ts';
import { overlap } from '../../records/address-pool.ts';
import { createDnsmasq, type Dnsmasq, requireDnsmasq, answersQuestions } from './dnsmasq.ts';
import { requireUnused } from './foreign-ranges.ts';
import type { NatTaps } from './nic-taps.ts';
import { giveBack, lend, listLent, planLent, listRoutes, uplinksOf } from './uplinks.ts';
import { ownDomainsOf } from './own-domains.ts';
import { bridgeMacOf, bridgeOf, natNamesOf, tapOf } from './nat-names.ts';
import {
  addBridge,
  closePorts,
  joinBridge,
  listHostLinks,
  readIpv4Address,
  removeBridge,
  setUpBridge,
} from './nat-bridge.ts';
import { createNatGuests, type GuestNic, type NatGuests, refuseGuest } from './nat-guests.ts';
import { type NatNetwork, planNatRules } from './plan-nat-rules.ts';
import { createRulesInForce, type RulesInForce } from './rules-in-force.ts';

/** A reloaded host firewall removes these tables, routes change, and dnsmasq can end. */
const LOOK_INTERVAL_MS = 10_000;

export interface NatReport {
  /** Failure of a network, by its name. */
  readonly failures: ReadonlyMap<string, string>;
  readonly repairs: readonly { readonly atMs: number; readonly what: string }[];
}

export interface NatNetworksOptions {
  readonly nodeName: string;
  /** Root of the node's files. */
  readonly root: string;
  readonly dir: string;
  readonly users: MachineUsers;
  readonly listNetworks: () => Promise<readonly NetworkRecord[]>;
  /** Names of the instances that have an address in a network, by the network's name. */
  readonly listMembers: () => Promise<Members>;
  /** Lists NICs of this node's instances. Called when a TAP was not opened by this daemon. */
  readonly listNics: () => Promise<readonly GuestNic[]>;
  /** Reads which private networks guests may reach. */
  readonly readPolicy: () => Promise<ReachPolicy>;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now'>;
  /** Only tests set it. */
  readonly lookIntervalMs?: number;
}

type Members = ReadonlyMap<string, readonly string[]>;
/** Failure of a network, by its name. */
type Failures = ReadonlyMap<string, unknown>;

/** Number of remembered repairs. */
const MAX_REPAIRS = 16;

/**
 * Makes the NAT networks of this node: a bridge each, with DHCP and DNS for its guests, and access
 * to the outside through the host. The records and the running instances determine the state of the
 * host. Without them nothing remains.
 *
 * INVARIANTS: one change at a time. Existing devices are found by their names in the kernel, never
 * by a file or memory. A TAP is opened after its rules are in force.
 */
export class NatNetworks implements NatTaps, AsyncDisposable {
  readonly #options: NatNetworksOptions;
  readonly #names: ReturnType<typeof natNamesOf>;
  readonly #queue = new SerialQueue<'nat'>();
  readonly #looking: Disposable;
  /** Networks at the last read of the store; undefined before the first. */
  #records: readonly NetworkRecord[] | undefined;
  readonly #guests: NatGuests;
  readonly #rules: RulesInForce;
  /** Bridges that existed at the last look, with a running dnsmasq. */
  #standing = new Map<string, NatNetwork>();
  /** Bridges whose dnsmasq has answered since its start. */
  readonly #answered = new Set<string>();
  #failures: Failures = new Map();
  #repairs: NatReport['repairs'] = [];
  #policy: ReachPolicy | undefined;
  #members: Members = new Map();

  constructor(options: NatNetworksOptions) {
    this.#options = options;
    this.#names = natNamesOf(options.root);
    this.#guests = createNatGuests({ names: this.#names, ...options });
    this.#rules = createRulesInForce(this.#names, join(options.dir, 'rules.nft'));
    this.#looking = every(options.lookIntervalMs ?? LOOK_INTERVAL_MS, () => this.#look());
  }

  /**
   * Refuses a network that this node cannot make.
   * @throws AppError HOST_PREREQUISITE, CONFLICT, VALIDATION
   */
  async check({ network, uuid }: NetworkRecord): Promise<void> {
    requireDnsmasq();
    requireMachineUsers(this.#options.users);
    const other = (await this.#wanted()).find(
      (one) => one.uuid !== uuid && overlap(one.network, network),
    );
    if (other !== undefined) {
      throw new AppError(
        'CONFLICT',
        `${network} overlaps with network '${other.name}' on this node`,
        {
          details: { name: other.name },
          hint: 'Create a network with other addresses.',
        },
      );
    }
    await requireUnused(network, [bridgeOf(this.#names, { uuid })]);
  }

  /**
   * Makes the networks of the records and removes others. The failure of one network does not
   * affect the others.
   * @throws AppError failure of the network of this name
   */
  settle(name: string): Promise<void> {
    return this.#queue.run('nat', async () => {
      const failures = await this.#apply(await this.#wanted());
      if (failures.has(name)) throw failures.get(name);
    });
  }

  /** Does the same in the background. Never rejects. */
  async follow(): Promise<void> {
    const { logger } = this.#options;
    await this.#queue
      .run('nat', async () => {
        for (const [network, error] of await this.#apply(await this.#wantedOrKnown()))
          logger.error('nat.not-settled', { network, message: messageOf(error) });
      })
      .catch((error: unknown) => logger.error('nat.not-settled', { message: messageOf(error) }));
  }

  /** Returns present failures, and repairs since this daemon started. */
  report(): NatReport {
    const failures = [...this.#failures].map(([name, error]) => [name, messageOf(error)] as const);
    return { failures: new Map(failures), repairs: this.#repairs };
  }

  requireSound(network: string): void {
    if (this.#failures.has(network)) throw this.#failures.get(network);
  }

  openNatTap(network: NetworkRecord, guest: GuestNic): ReturnType<NatTaps['openNatTap']> {
    return this.#queue.run('nat', async () => {
      const bridge = bridgeOf(this.#names, network);
      const device = tapOf(this.#names, guest.uuid);
      refuseGuest(guest, device, bridgeMacOf(bridge, this.#options.root));
      const others = (this.#records ?? (await this.#wanted())).filter(
        ({ uuid }) => uuid !== network.uuid,
      );
      const failures = await this.#apply(
        [...others, network],
        networkGuest.parse({ ...guest, device }),
      );
      if (failures.has(network.name)) throw failures.get(network.name);
      return openBridgedTap({ link: bridge, device, onlyMac: guest.mac });
    });
  }

  async tidy(): Promise<void> {
    if (this.#guests.devices().every(isThere)) return;
    await this.follow();
  }

  /**
   * Keeps the networks of running guests. Without any guest it removes everything until the next
   * start.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#looking[Symbol.dispose]();
    await this.#queue
      .run('nat', async () => {
        const links = await listHostLinks();
        const isUsed = links.some(({ name }) => name.startsWith(this.#names.tapPrefix));
        if (!isUsed) await this.#removeAll(links);
      })
      .catch((error: unknown) => {
        this.#options.logger.error('nat.not-removed', { message: messageOf(error) });
      });
  }

  /** Queries dnsmasq outside of the queue, so that jobs do not wait for a hanging one. */
  async #look(): Promise<void> {
    const isIdle = this.#records?.length === 0 && this.#standing.size === 0;
    if (isIdle) return;
    await Promise.all([...this.#standing.values()].map((network) => this.#endHanging(network)));
    await this.follow();
  }

  async #endHanging(network: NatNetwork): Promise<void> {
    const { bridge, gateway } = network;
    if (await answersQuestions(gateway)) this.#answered.add(bridge);
    // A dnsmasq that never answered may be behind a firewall that drops queries.
    else if (this.#answered.delete(bridge)) {
      this.#noteRepair(
        `dnsmasq of network '${network.name}' stopped responding`,
        'nat.dnsmasq-hung',
      );
      await this.#queue
        .run('nat', () => this.#dnsmasqOf(network).stop())
        .catch((error: unknown) => {
          this.#options.logger.error('nat.not-settled', { message: messageOf(error) });
        });
    }
  }

  /**
   * Falls back to the last read when the store is unavailable.
   * @throws the store's error before the first read
   */
  async #wantedOrKnown(): Promise<readonly NetworkRecord[]> {
    try {
      return await this.#wanted();
    } catch (error) {
      if (this.#records === undefined) throw error;
      this.#options.logger.debug('nat.records-not-read', { err: error });
      return this.#records;
    }
  }

  async #wanted(): Promise<readonly NetworkRecord[]> {
    const { nodeName, listNetworks } = this.#options;
    this.#records = (await listNetworks()).filter(
      ({ connections }) => ownValue(connections, nodeName)?.mode === 'nat',
    );
    return this.#records;
  }

  /** @param arriving a guest whose TAP is about to be opened */
  async #apply(wanted: readonly NetworkRecord[], arriving?: NetworkGuest): Promise<Failures> {
    const links = await listHostLinks();
    const guests = await this.#guests.settle(links, arriving);
    if (wanted.length > 0) await this.#readMembers();
    const planned = wanted
      .filter(({ gateway }) => gateway !== null)
      .map((record) => this.#planNetwork(record));
    const networks = [...planned, ...(await this.#findOrphaned(links, guests, planned))];
    if (networks.length > 0) {
      this.#failures = await this.#make(networks, guests, links);
    } else {
      await this.#removeAll(links);
      this.#failures = new Map();
    }
    return this.#failures;
  }

  /**
   * Finds networks that lost their record while instances use them. The kernel has their addresses.
   */
  async #findOrphaned(
    links: readonly Link[],
    guests: readonly NetworkGuest[],
    planned: readonly NatNetwork[],
  ): Promise<readonly NatNetwork[]> {
    const found = new Map<string, NatNetwork>();
    for (const { device, network: name } of guests) {
      const port = links.find((link) => link.name === device);
      const master = links.find(({ index }) => index === port?.masterIndex);
      if (!master?.name.startsWith(this.#names.bridgePrefix)) continue;
      const bridge = master.name;
      if ([...planned, ...found.values()].some((one) => one.name === name || one.bridge === bridge))
        continue;
      const own = await readIpv4Address(master);
      if (own !== undefined)
        found.set(name, {
          name,
          bridge,
          network: own.network,
          gateway: own.address,
          domains: [],
          members: [],
        });
    }
    return [...found.values()];
  }

  async #make(
    planned: readonly NatNetwork[],
    guests: readonly NetworkGuest[],
    links: readonly Link[],
  ): Promise<Failures> {
    const uplinks = uplinksOf(listRoutes());
    const former = listLent(links, this.#names);
    const lent = planLent(uplinks, former);
    const failures = new Map<string, unknown>();
    const leaving = this.#listLeaving(links, planned);
    mkdirSync(this.#options.dir, { recursive: true, mode: 0o755 });
    const networks = await tryEach(planned, failures, (one) => this.#ensureBridge(one, leaving));
    await closePorts(
      links.map(({ name }) => name).filter((name) => name.startsWith(this.#names.tapPrefix)),
    );
    this.#policy = await this.#readPolicy();
    const policy = this.#policy;
    const rules = planNatRules({ names: this.#names, networks, guests, uplinks, lent, policy });
    if (!(await this.#rules.apply(rules)))
      this.#noteRepair('the rules were changed or removed', 'nat.rules-were-changed');
    for (const device of await lend(lent, former, this.#names))
      this.#noteRepair(`forwarding was disabled on ${device}`, 'nat.forwarding-was-off');
    await giveBack(
      former.filter((device) => !lent.includes(device)),
      links,
      this.#names,
    );
    const served = await tryEach(networks, failures, async (network) => {
      const own = guests.filter((guest) => guest.network === network.name);
      await joinBridge(network.bridge, own);
      await this.#ensureDnsmasq(network, own);
    });
    for (const bridge of leaving) await this.#removeNetwork(bridge);
    this.#standing = new Map(served.map((network) => [network.bridge, network]));
    return failures;
  }

  async #ensureDnsmasq(network: NatNetwork, guests: readonly NetworkGuest[]): Promise<void> {
    const { bridge, name } = network;
    const isStarted = await this.#dnsmasqOf(network).ensure(network, guests);
    if (isStarted && this.#answered.delete(bridge))
      this.#noteRepair(`dnsmasq of network '${name}' had stopped`, 'nat.dnsmasq-had-ended');
  }

  async #removeAll(links: readonly Link[]): Promise<void> {
    const leaving = this.#listLeaving(links, []);
    const lent = listLent(links, this.#names);
    this.#standing.clear();
    const isClean = leaving.length + lent.length === 0 && !existsSync(this.#options.dir);
    if (isClean && !(await this.#rules.areThere())) return;
    for (const bridge of leaving) await this.#removeNetwork(bridge);
    await giveBack(lent, links, this.#names);
    await this.#rules.remove();
    rmSync(this.#options.dir, { recursive: true, force: true });
  }

  /** Lists bridges without a network, and leftover folders of such bridges. */
  #listLeaving(links: readonly Link[], planned: readonly NatNetwork[]): readonly string[] {
    const { dir } = this.#options;
    const found = [...links.map(({ name }) => name), ...(existsSync(dir) ? readdirSync(dir) : [])];
    return [...new Set(found)].filter(
      (name) =>
        name.startsWith(this.#names.bridgePrefix) && !planned.some(({ bridge }) => bridge === name),
    );
  }

  async #removeNetwork(bridge: string): Promise<void> {
    await this.#dnsmasqOf({ bridge }).remove();
    await removeBridge(bridge);
    this.#options.logger.info('nat.removed', { bridge });
  }

  /** @param leaving bridges that are about to be removed with their addresses */
  async #ensureBridge(
    { name, bridge, network, gateway }: NatNetwork,
    leaving: readonly string[],
  ): Promise<void> {
    const isNew = !existsSync(`/sys/class/net/${bridge}`);
    if (isNew) {
      await requireUnused(network, leaving);
      // An earlier dnsmasq still listens on the deleted bridge.
      await this.#dnsmasqOf({ bridge }).stop();
      await addBridge(bridge, bridgeMacOf(bridge, this.#options.root));
      this.#answered.delete(bridge);
      if (this.#standing.delete(bridge))
        this.#noteRepair(`the bridge of network '${name}' had disappeared`, 'nat.bridge-was-gone');
    }
    await setUpBridge(bridge, `${gateway}/${network.split('/')[1] ?? ''}`);
    if (isNew) this.#options.logger.info('nat.made', { network: name, bridge });
  }

  #noteRepair(what: string, event: string): void {
    const { logger, clock } = this.#options;
    logger.warn(event, { what });
    this.#repairs = [...this.#repairs, { atMs: clock.now(), what }].slice(-MAX_REPAIRS);
  }

  /** Keeps the last policy when the store is unavailable. */
  async #readPolicy(): Promise<ReachPolicy> {
    try {
      return await this.#options.readPolicy();
    } catch (error) {
      if (this.#policy === undefined) throw error;
      return this.#policy;
    }
  }

  /** Keeps the last members when the store is unavailable. */
  async #readMembers(): Promise<void> {
    try {
      this.#members = await this.#options.listMembers();
    } catch (error) {
      this.#options.logger.debug('nat.members-not-read', { err: error });
    }
  }

  #planNetwork({ name, uuid, network, gateway, tags }: NetworkRecord): NatNetwork {
    const bridge = bridgeOf(this.#names, { uuid });
    const domains = ownDomainsOf(tags);
    const members = this.#members.get(name) ?? [];
    return { name, bridge, network, gateway: gateway ?? '', domains, members };
  }

  #dnsmasqOf({ bridge }: Pick<NatNetwork, 'bridge'>): Dnsmasq {
    const { dir, users } = this.#options;
    // Users of QEMU processes start after this one.
    return createDnsmasq(join(dir, bridge), users.first);
  }
}

/** @returns the networks without a failure */
async function tryEach(
  networks: readonly NatNetwork[],
  failures: Map<string, unknown>,
  work: (network: NatNetwork) => Promise<void>,
): Promise<readonly NatNetwork[]> {
  const done: NatNetwork[] = [];
  for (const network of networks) {
    try {
      await work(network);
      done.push(network);
    } catch (error) {
      failures.set(network.name, error);
    }
  }
  return done;
}

/** A TAP disappears with its QEMU process. */
function isThere(device: string): boolean {
  return existsSync(`/sys/class/net/${device}`);
}
