import type { ClusterRecord } from '#shared/contract/api.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { ServiceTarget } from '../../net/metad-link/service-relay.ts';
import type { ChannelNetwork } from '../../net/channel/channel-network.ts';
import type { KeptMachine } from './machine-keeper.ts';

interface Named {
  readonly name: string;
  readonly channel: { readonly ip: string };
}

export interface ExposedServicesDependencies {
  readonly clusters: ClusterRepository;
  readonly instances: {
    findByUuid(uuid: string): Promise<Named | undefined>;
  };
  readonly network: Pick<ChannelNetwork, 'setServicePorts'>;
  readonly keeper: {
    get(uuid: string): Pick<KeptMachine, 'device'> | undefined;
    republishAll(): Promise<unknown>;
  };
}

/**
 * The operator's services that guests reach through the channel, as the cluster's record has them
 * now.
 */
export interface ExposedServices {
  /** Opens the filter for their ports, and closes it for others. @throws AppError NETWORK_SETUP */
  openPorts(): Promise<void>;
  /**
   * Called after a change of the record: shows it at once to what runs, and ends connections to
   * what was taken away.
   */
  publish(): Promise<void>;
  /** Called after a change that another node may have made: does the same if there was one. */
  refresh(): Promise<void>;
  /**
   * Where an instance's connection or datagrams to a service go; undefined when it may not have
   * one.
   */
  find(uuid: string, name: string): Promise<ServiceTarget | undefined>;
}

export function createExposedServices(dependencies: ExposedServicesDependencies): ExposedServices {
  return new RecordedServices(dependencies);
}

class RecordedServices implements ExposedServices {
  readonly #dependencies: ExposedServicesDependencies;
  /** What the filter lets through, as text. */
  #opened = '';
  /** The services as the store had them last. */
  #services: ClusterRecord['exposeServices'] = {};
  readonly #callers = new Map<string, Named>();

  constructor(dependencies: ExposedServicesDependencies) {
    this.#dependencies = dependencies;
  }

  async openPorts(): Promise<void> {
    const { clusters, network } = this.#dependencies;
    const { exposeServices } = await clusters.load();
    const services = Object.values(exposeServices);
    const portsOf = (wanted: 'tcp' | 'udp'): readonly number[] =>
      services.filter(({ protocol = 'tcp' }) => protocol === wanted).map(({ port }) => port);
    await network.setServicePorts({ tcp: portsOf('tcp'), udp: portsOf('udp') });
    this.#opened = JSON.stringify(exposeServices);
  }

  async publish(): Promise<void> {
    await this.openPorts();
    await this.#dependencies.keeper.republishAll();
  }

  async refresh(): Promise<void> {
    const { exposeServices } = await this.#dependencies.clusters.load();
    if (JSON.stringify(exposeServices) !== this.#opened) await this.publish();
  }

  async find(uuid: string, name: string): Promise<ServiceTarget | undefined> {
    if (this.#dependencies.keeper.get(uuid)?.device == null) {
      this.#callers.delete(uuid);
      return undefined;
    }
    await this.#readAgain(uuid);
    const service = ownValue(this.#services, name);
    const instance = this.#callers.get(uuid);
    if (service === undefined || instance === undefined) return undefined;
    const { channel } = instance;
    const { port, protocol = 'tcp', ...destination } = service;
    return { port, protocol, destination, instance: { name: instance.name, uuid, ip: channel.ip } };
  }

  /** While the store is away, guests go on with what they had. */
  async #readAgain(uuid: string): Promise<void> {
    const { clusters, instances } = this.#dependencies;
    try {
      this.#services = (await clusters.load()).exposeServices;
      const caller = await instances.findByUuid(uuid);
      if (caller === undefined) this.#callers.delete(uuid);
      else this.#callers.set(uuid, { name: caller.name, channel: caller.channel });
    } catch (error) {
      if (!isAppError(error, 'STORE_UNAVAILABLE')) throw error;
    }
  }
}
