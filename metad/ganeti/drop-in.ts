import type { Socket } from 'node:net';
import type { Clock } from '#shared/clock/clock.ts';
import { DEFAULT_DIALECTS } from '#shared/contract/primitives.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { Instance } from '../channel/instance.ts';
import type { InstanceDirectory } from '../channel/registry.ts';
import { RenderedSites } from '../channel/rendered-sites.ts';
import { MAX_RENDERED_SITES } from '../config/limits.ts';
import type { GuestServer } from '../http/guest-server.ts';
import type { Leaf } from '../view/leaf.ts';
import type { ServedView } from '../view/served-view.ts';
import { type GanetiInstance, parseGanetiInstance } from './instance-dict.ts';

export interface DropInOptions {
  readonly guests: GuestServer;
  readonly readLeaves: (instance: GanetiInstance) => Promise<ReadonlyMap<string, Leaf>>;
  readonly deviceOf: (ip: string) => string | null;
  readonly hasListener: (device: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The instances that Ganeti has announced. Ganeti never announces a removal, so later messages
 * decide: an address belongs to the instance that got it last, and an instance without
 * communication has none.
 */
export class GanetiDropIn implements InstanceDirectory {
  readonly #instances = new Map<string, Instance>();
  readonly #byIp = new Map<string, Instance>();
  /** Each instance's addresses: the reverse of the map above. */
  readonly #ips = new Map<Instance, readonly string[]>();
  readonly #options: DropInOptions;
  readonly #rendered = new RenderedSites(MAX_RENDERED_SITES);

  constructor(options: DropInOptions) {
    this.#options = options;
  }

  get(uuid: string): Instance | undefined {
    return this.#instances.get(uuid);
  }

  instances(): readonly Instance[] {
    return [...this.#instances.values()];
  }

  addresses(): readonly string[] {
    return [...this.#byIp.keys()];
  }

  /** @throws AppError NOT_SUPPORTED */
  async put(): Promise<void> {
    throw new AppError('NOT_SUPPORTED', 'instances come from Ganeti on its own socket');
  }

  async remove(uuid: string): Promise<void> {
    this.#forget(uuid);
  }

  /**
   * @returns the instance's addresses from now on
   * @throws LuxiRefusal
   */
  async updateConfig(value: unknown): Promise<readonly string[]> {
    const parsed = parseGanetiInstance(value);
    const fields = { instance: parsed.name, addresses: parsed.communicationIps };
    const [ip] = parsed.communicationIps;
    if (ip === undefined) {
      this.#forget(parsed.uuid);
      this.#options.logger.info('ganeti.no-communication', fields);
      return [];
    }
    const leaves = await this.#options.readLeaves(parsed);
    this.#serve(parsed, ip, leaves);
    this.#options.logger.info('ganeti.served', fields);
    return parsed.communicationIps;
  }

  /** Takes a connection from a listener of one device, or of all (null). */
  accept(device: string | null, socket: Socket): void {
    const ip = socket.remoteAddress ?? '';
    const instance = this.#byIp.get(ip);
    if (!instance || !this.#isBehind(ip, device)) {
      socket.destroy();
      return;
    }
    this.#options.guests.accept(instance, socket, true);
  }

  /**
   * A device with its own listener identifies its guest; other guests are known by the source
   * address alone.
   */
  #isBehind(ip: string, device: string | null): boolean {
    const expected = this.#options.deviceOf(ip);
    if (device !== null) return expected === device;
    return expected === null || !this.#options.hasListener(expected);
  }

  #serve(parsed: GanetiInstance, ip: string, leaves: ReadonlyMap<string, Leaf>): void {
    const known = this.#instances.get(parsed.uuid);
    const view = ganetiView(parsed, ip, known?.view);
    const instance = known ?? new Instance(view, this.#options.clock, this.#rendered);
    instance.replaceView(view, leaves);
    this.#instances.set(parsed.uuid, instance);
    for (const address of this.#ips.get(instance) ?? []) this.#byIp.delete(address);
    this.#ips.set(instance, parsed.communicationIps);
    for (const address of parsed.communicationIps) {
      const owner = this.#byIp.get(address);
      if (owner && owner !== instance) this.#loseAddress(owner, address);
      this.#byIp.set(address, instance);
    }
  }

  /** Takes an address from its former owner, which is removed unless it has further addresses. */
  #loseAddress(owner: Instance, address: string): void {
    owner.closeConnections();
    const left = (this.#ips.get(owner) ?? []).filter((ip) => ip !== address);
    this.#ips.set(owner, left);
    if (left.length === 0) this.#forget(owner.view.uuid);
  }

  #forget(uuid: string): void {
    const instance = this.#instances.get(uuid);
    if (!instance) return;
    this.#instances.delete(uuid);
    for (const ip of this.#ips.get(instance) ?? []) this.#byIp.delete(ip);
    this.#ips.delete(instance);
    instance.end();
  }
}

/**
 * Makes a view from Ganeti's data. Missing values get defaults that change nothing for the guest.
 */
function ganetiView(
  instance: GanetiInstance,
  ip: string,
  known: ServedView | undefined,
): ServedView {
  const nic = instance.nics.find((candidate) => candidate.ip === ip);
  return {
    version: 1,
    revision: (known?.revision ?? 0) + 1,
    name: instance.name,
    uuid: instance.uuid,
    instanceId: instance.uuid,
    mode: 'run',
    os: instance.os,
    hypervisor: instance.hypervisor,
    beparams: instance.beparams,
    nics: instance.nics.map((candidate) => ({ ...candidate })),
    disks: instance.disks.map((uuid) => ({ uuid, sizeBytes: 0 })),
    tags: [...instance.tags],
    metadata: {},
    primaryNode: instance.primaryNode,
    clusterName: 'ganeti',
    // Without a device, nothing uses this hop limit: the listeners set theirs.
    channel: { device: '', mac: nic?.mac ?? '', ip, hopLimit: 1 },
    dialects: [...DEFAULT_DIALECTS],
    metadataToken: 'optional',
    osParameters: parametersOf(instance, known),
    userData: null,
    vendorData: null,
    networkConfig: null,
    sshKeys: [],
    limits: DEFAULT_LIMITS,
    services: [],
    install: null,
    createdAtMs: instance.createdAtMs,
  };
}

/**
 * `gnt-instance modify` sends no secrets, so the guest keeps its present ones. Secrets of a former
 * installation or a former OS end with it.
 */
function parametersOf(
  instance: GanetiInstance,
  known: ServedView | undefined,
): ServedView['osParameters'] {
  if (instance.hasSecrets || instance.isReinstall || known?.os !== instance.os)
    return instance.parameters;
  const kept = [...known.osParameters].filter(([, { visibility }]) => visibility === 'secret');
  return new Map([...kept, ...instance.parameters]);
}
