import { NAME_SERVICE_PORT } from '#shared/contract/service-address.ts';
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
 * Exposes the operator's services to guests through the channel, as the cluster's record has them.
 */
export class ExposedServices {
  readonly #dependencies: ExposedServicesDependencies;
  /** Open services of the packet filter, as JSON. */
  #opened = '';
  /** Services at the last read of the store. */
  #services: ClusterRecord['exposeServices'] = {};
  readonly #callers = new Map<string, Named>();

  constructor(dependencies: ExposedServicesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Opens the packet filter for their ports and closes others. @throws AppError NETWORK_SETUP */
  async openPorts(): Promise<void> {
    const { clusters, network } = this.#dependencies;
    const { exposeServices } = await clusters.load();
    const services = Object.values(exposeServices);
    const portsOf = (wanted: 'tcp' | 'udp'): readonly number[] =>
      services.filter(({ protocol = 'tcp' }) => protocol === wanted).map(({ port }) => port);
    const udp = [...new Set([...portsOf('udp'), NAME_SERVICE_PORT])];
    await network.setServicePorts({ tcp: portsOf('tcp'), udp });
    this.#opened = JSON.stringify(exposeServices);
  }

  /** Shows a changed record to running guests, and ends connections to removed services. */
  async publish(): Promise<void> {
    await this.openPorts();
    await this.#dependencies.keeper.republishAll();
  }

  /** Publishes a change that another node made. */
  async refresh(): Promise<void> {
    const { exposeServices } = await this.#dependencies.clusters.load();
    if (JSON.stringify(exposeServices) !== this.#opened) await this.publish();
  }

  /**
   * Returns the destination of an instance's connection or datagrams; undefined without permission.
   */
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

  /** Guests keep the last services while the store is unavailable. */
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
