import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { networkGuest, networkRecord, type NetworkRecord } from '#shared/contract/network.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { run } from '#shared/process/run.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { type MachineUsers, requireMachineUsers } from '../host/machine-users.ts';
import { openBridgedTap } from '../network/bridged-tap.ts';
import { overlap } from './address-pool.ts';
import { createDnsmasq, type Dnsmasq, requireDnsmasq } from './dnsmasq.ts';
import { requireUnused } from './foreign-ranges.ts';
import type { NatCards } from './instance-cards.ts';
import { bridgeMacOf, bridgeOf, natNamesOf, tapOf } from './nat-names.ts';
import { addBridge, joinBridge, removeBridge, setUpBridge } from './nat-bridge.ts';
import { type NatNetwork, planNatRules, planNatRulesRemoval } from './plan-nat-rules.ts';
import { isRouter, listRoutes, readForwarding, uplinksOf, writeForwarding } from './uplinks.ts';

/** A firewall that is loaded anew takes our tables along, routes change, and dnsmasq may end. */
const LOOK_INTERVAL_MS = 10_000;

/**
 * Networks that this node makes itself: a bridge each, with DHCP and names for its guests, and the
 * outside through the host. What is there follows from the records and from the machines that run,
 * and nothing of it is left without them.
 */
export interface NatNetworks extends NatCards, AsyncDisposable {
  /** @throws AppError HOST_PREREQUISITE, CONFLICT, VALIDATION: it cannot be one of this node's */
  check(network: NetworkRecord): Promise<void>;
  /**
   * Makes what the records say, and takes away what they do not: what one network lacks, the others
   * do not. @throws AppError what is wrong with the network of this name
   */
  settle(name: string): Promise<void>;
  /** The same where nobody waits for it. Never rejects. */
  follow(): Promise<void>;
}

export interface NatNetworksOptions {
  readonly nodeName: string;
  /** Of the node's files. */
  readonly root: string;
  readonly dir: string;
  readonly users: MachineUsers;
  readonly listNetworks: () => Promise<readonly NetworkRecord[]>;
  readonly logger: Logger;
}

/** What the daemon after this one has to know; written before it is true. */
const natState = z.object({
  /** Those that are made, or about to be. */
  networks: z.array(networkRecord).readonly(),
  /** One that is no guest takes the rules of no other away. */
  guests: z
    .array(networkGuest.or(z.unknown().transform(() => null)))
    .readonly()
    .transform((guests) => guests.filter((guest) => guest !== null)),
  /** Devices that forward because of us. */
  lent: z.array(z.string()).readonly(),
});
type NatState = z.infer<typeof natState>;

/** By the name of the network: what is wrong with it. */
type Failures = ReadonlyMap<string, unknown>;

const NOTHING: NatState = { networks: [], guests: [], lent: [] };

export function createNatNetworks(options: NatNetworksOptions): NatNetworks {
  return new HostNatNetworks(options);
}

/**
 * INVARIANTS: one change at a time; the state file tells of whatever is on the host before it is
 * there, and until it is gone; a TAP is opened after its rules are in force.
 */
class HostNatNetworks implements NatNetworks {
  readonly #options: NatNetworksOptions;
  readonly #names: ReturnType<typeof natNamesOf>;
  readonly #queue = new SerialQueue<'nat'>();
  readonly #timer: NodeJS.Timeout;
  #state: NatState;
  /** The rules that were put in force last, and how they are listed since. */
  #inForce: { readonly rules: string; readonly listed: string | null } | undefined;

  constructor(options: NatNetworksOptions) {
    this.#options = options;
    this.#names = natNamesOf(options.root);
    this.#state = readState(this.#stateFile, options.logger);
    const look = (): void => {
      if (this.#state.networks.length > 0) void this.follow();
    };
    this.#timer = setInterval(look, LOOK_INTERVAL_MS).unref();
  }

  async check({ name, network, gateway, uuid }: NetworkRecord): Promise<void> {
    requireDnsmasq();
    requireMachineUsers(this.#options.users);
    if (gateway === null) {
      throw new AppError(
        'VALIDATION',
        `network '${name}' has no gateway, which this host is to be`,
        {
          hint: `gnt-network modify --gateway ADDRESS ${name}`,
        },
      );
    }
    const other = (await this.#wanted()).find(
      (one) => one.uuid !== uuid && overlap(one.network, network),
    );
    if (other !== undefined) {
      throw new AppError('CONFLICT', `${network} overlaps with network '${other.name}' here`, {
        details: { name: other.name },
        hint: 'make a network of other addresses',
      });
    }
    await requireUnused(network, [bridgeOf(this.#names, { uuid })]);
  }

  settle(name: string): Promise<void> {
    return this.#queue.run('nat', async () => {
      const failures = await this.#apply(await this.#wanted());
      if (failures.has(name)) throw failures.get(name);
    });
  }

  async follow(): Promise<void> {
    const { logger } = this.#options;
    await this.#queue
      .run('nat', async () => {
        // A store that is away changes nothing.
        const wanted = await this.#wanted().catch((error: unknown) => {
          logger.debug('nat.records-not-read', { err: error });
          return this.#state.networks;
        });
        for (const [network, error] of await this.#apply(wanted))
          logger.error('nat.not-settled', { network, message: messageOf(error) });
      })
      .catch((error: unknown) => logger.error('nat.not-settled', { message: messageOf(error) }));
  }

  openCard(
    network: NetworkRecord,
    guest: Parameters<NatCards['openCard']>[1],
  ): ReturnType<NatCards['openCard']> {
    return this.#queue.run('nat', async () => {
      const device = tapOf(this.#names, guest.mac);
      const others = this.#state.guests.filter((one) => one.device !== device);
      const networks = this.#state.networks.filter(({ uuid }) => uuid !== network.uuid);
      const kept = others.filter(isThere);
      const guests = [...kept, { ...guest, device }];
      const failures = await this.#apply([...networks, network], guests);
      if (failures.has(network.name)) throw failures.get(network.name);
      return openBridgedTap({ link: bridgeOf(this.#names, network), device });
    });
  }

  async tidy(): Promise<void> {
    if (this.#state.guests.every(isThere)) return;
    await this.follow();
  }

  /** Guests keep their network; without any, nothing is left until the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#queue.run('nat', async () => {
      if (!this.#state.guests.some(isThere)) await this.#apply([], []).catch(() => undefined);
    });
  }

  async #wanted(): Promise<readonly NetworkRecord[]> {
    const { nodeName, listNetworks } = this.#options;
    return (await listNetworks()).filter(
      ({ connections }) => connections[nodeName]?.mode === 'nat',
    );
  }

  async #apply(
    wanted: readonly NetworkRecord[],
    guests: NatState['guests'] = this.#state.guests.filter(isThere),
  ): Promise<Failures> {
    // A machine runs on, whatever became of the record of its network.
    const orphaned = this.#state.networks.filter(
      (former) =>
        guests.some(({ network }) => network === former.name) &&
        !wanted.some(({ name }) => name === former.name),
    );
    const records = [...wanted, ...orphaned].filter(({ gateway }) => gateway !== null);
    const gone = this.#state.networks.filter(
      ({ uuid }) => !records.some((record) => record.uuid === uuid),
    );
    if (records.length > 0) return this.#make(records, guests, gone);
    await this.#removeAll();
    return new Map();
  }

  async #make(
    records: readonly NetworkRecord[],
    guests: NatState['guests'],
    gone: readonly NetworkRecord[],
  ): Promise<Failures> {
    const uplinks = uplinksOf(listRoutes());
    const lent = isRouter()
      ? []
      : uplinks.filter(
          (device) => this.#state.lent.includes(device) || readForwarding(device) === '0',
        );
    const former = this.#state.lent;
    this.#write({
      networks: [...records, ...gone],
      guests,
      lent: [...new Set([...former, ...lent])],
    });
    const failures = new Map<string, unknown>();
    const leaving = gone.map((record) => this.#planNetwork(record));
    const planned = records.map((record) => this.#planNetwork(record));
    const networks = await tryEach(planned, failures, (one) => this.#ensureBridge(one, leaving));
    await this.#applyRules(planNatRules({ names: this.#names, networks, guests, uplinks, lent }));
    for (const device of lent) writeForwarding(device, '1');
    this.#giveBack(former.filter((device) => !lent.includes(device)));
    await tryEach(networks, failures, async (network) => {
      const own = guests.filter((guest) => guest.network === network.name);
      for (const { device } of own) await joinBridge(network.bridge, device);
      await this.#dnsmasqOf(network).ensure(network, own);
    });
    await tryEach(leaving, failures, (network) => this.#removeNetwork(network));
    const left = gone.filter(({ uuid }) =>
      existsSync(`/sys/class/net/${bridgeOf(this.#names, { uuid })}`),
    );
    this.#write({ networks: [...records, ...left], guests, lent });
    return failures;
  }

  /** Also what a state file that was lost does not tell of. */
  async #removeAll(): Promise<void> {
    const bridges = readdirSync('/sys/class/net').filter((name) =>
      name.startsWith(this.#names.bridgePrefix),
    );
    const { networks, lent } = this.#state;
    const isThereAny = networks.length + lent.length + bridges.length > 0;
    if (!isThereAny && !existsSync(this.#options.dir)) return;
    for (const record of networks) await this.#removeNetwork(this.#planNetwork(record));
    for (const bridge of bridges) await removeBridge(bridge);
    this.#giveBack(lent);
    this.#inForce = undefined;
    await run('nft', [planNatRulesRemoval(this.#names)]);
    this.#state = NOTHING;
    rmSync(this.#options.dir, { recursive: true, force: true });
  }

  async #removeNetwork(network: NatNetwork): Promise<void> {
    await this.#dnsmasqOf(network).remove();
    await removeBridge(network.bridge);
    this.#options.logger.info('nat.removed', { network: network.name });
  }

  /** @param leaving networks that are about to go, and their addresses with them */
  async #ensureBridge(
    { name, bridge, network, gateway }: NatNetwork,
    leaving: readonly NatNetwork[],
  ): Promise<void> {
    const isNew = !existsSync(`/sys/class/net/${bridge}`);
    if (isNew) {
      await requireUnused(
        network,
        leaving.map((one) => one.bridge),
      );
      // One that was there before it listened to a bridge that is gone.
      await this.#dnsmasqOf({ bridge }).stop();
      await addBridge(bridge, bridgeMacOf(bridge, this.#options.root));
    }
    await setUpBridge(bridge, `${gateway}/${network.split('/')[1] ?? ''}`);
    if (isNew) this.#options.logger.info('nat.made', { network: name, bridge });
  }

  /** From a file: there is no limit to what they are together. */
  async #applyRules(rules: string): Promise<void> {
    const isSame = this.#inForce?.rules === rules;
    if (isSame && (await this.#listRules()) === this.#inForce?.listed) return;
    if (isSame) this.#options.logger.warn('nat.rules-were-changed');
    const path = join(this.#options.dir, 'rules.nft');
    writeFileSync(path, rules, { mode: 0o600 });
    await run('nft', ['-f', path]);
    this.#inForce = { rules, listed: await this.#listRules() };
  }

  /** Without what sets have come to hold. Null where a table is gone. */
  async #listRules(): Promise<string | null> {
    const list = async (family: string): Promise<string> =>
      (await run('nft', ['--terse', 'list', 'table', family, this.#names.table])).stdout;
    try {
      return `${await list('inet')}${await list('bridge')}`;
    } catch {
      return null;
    }
  }

  /** Unless somebody else has made the host a router meanwhile. */
  #giveBack(devices: readonly string[]): void {
    if (isRouter()) return;
    for (const device of devices) writeForwarding(device, '0');
  }

  #planNetwork({ name, uuid, network, gateway }: NetworkRecord): NatNetwork {
    return { name, bridge: bridgeOf(this.#names, { uuid }), network, gateway: gateway ?? '' };
  }

  #dnsmasqOf({ bridge }: Pick<NatNetwork, 'bridge'>): Dnsmasq {
    const { dir, users } = this.#options;
    // Users of machines are their processes' numbers from here on, and none has the number 0.
    return createDnsmasq(join(dir, bridge), users.first);
  }

  #write(state: NatState): void {
    mkdirSync(this.#options.dir, { recursive: true, mode: 0o755 });
    writeFileSync(`${this.#stateFile}.new`, JSON.stringify(state), { mode: 0o600 });
    renameSync(`${this.#stateFile}.new`, this.#stateFile);
    this.#state = state;
  }

  get #stateFile(): string {
    return join(this.#options.dir, 'state.json');
  }
}

/** @returns those that it went well with */
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

/** A TAP goes with its machine. */
function isThere({ device }: { readonly device: string }): boolean {
  return existsSync(`/sys/class/net/${device}`);
}

function readState(path: string, logger: Logger): NatState {
  if (!existsSync(path)) return NOTHING;
  try {
    return natState.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    logger.error('nat.state-unreadable', { path, message: messageOf(error) });
    return NOTHING;
  }
}
