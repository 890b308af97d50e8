import type { ClusterRepository } from '../cluster/cluster-repository.ts';
import type { ServiceTarget } from '../metad-link/service-relay.ts';
import type { ChannelNetwork } from '../network/channel-network.ts';
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

/** The operator's services that guests reach through the channel, as the cluster's record has them now. */
export class ExposedServices {
  readonly #dependencies: ExposedServicesDependencies;
  /** What the filter lets through, as text. */
  #opened = '';

  constructor(dependencies: ExposedServicesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Opens the filter for their ports, and closes it for others. @throws AppError NETWORK_SETUP */
  async openPorts(): Promise<void> {
    const { clusters, network } = this.#dependencies;
    const { exposeServices } = await clusters.load();
    await network.setServicePorts(Object.values(exposeServices).map(({ port }) => port));
    this.#opened = JSON.stringify(exposeServices);
  }

  /** After a change of the record: what runs sees it at once, and connections to what was taken away end. */
  async publish(): Promise<void> {
    await this.openPorts();
    await this.#dependencies.keeper.republishAll();
  }

  /** After a change that another node may have made. */
  async refresh(): Promise<void> {
    const { exposeServices } = await this.#dependencies.clusters.load();
    if (JSON.stringify(exposeServices) !== this.#opened) await this.publish();
  }

  /** Where an instance's connection to a service goes; undefined when it may not have one. */
  async find(uuid: string, name: string): Promise<ServiceTarget | undefined> {
    const { clusters, instances, keeper } = this.#dependencies;
    if (keeper.get(uuid)?.device == null) return undefined;
    const { exposeServices } = await clusters.load();
    const service = Object.hasOwn(exposeServices, name) ? exposeServices[name] : undefined;
    const instance = service && (await instances.findByUuid(uuid));
    if (service === undefined || instance === undefined) return undefined;
    const { channel } = instance;
    return { ...service, instance: { name: instance.name, uuid, ip: channel.ip } };
  }
}
