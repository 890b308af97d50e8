import type { RemoteInfo, Socket } from 'node:dgram';
import type { Clock } from '#shared/clock/clock.ts';
import { MAX_DATAGRAM_BYTES, MAX_DATAGRAM_FLOWS } from '#shared/contract/metad-control.ts';
import type { ViewService } from '#shared/contract/view.ts';
import { hasOwnAddress } from '../channel/has-own-address.ts';
import type { Instance } from '../channel/instance.ts';
import { MAX_DATAGRAM_BYTES_WAITING, MAX_DATAGRAM_FLOWS_OF_ALL } from '../config/limits.ts';
import type { Audit } from '../http/audit.ts';
import type { GuestMetrics } from '../http/guest-metrics.ts';
import { DatagramFlow } from './datagram-flow.ts';

export interface DatagramRelayOptions {
  /** The node daemon's content socket: only the node daemon can leave the channel's namespace. */
  readonly socketPath: string;
  readonly metrics: GuestMetrics;
  readonly audit: Audit;
  readonly clock: Clock;
}

/**
 * Relays datagrams of guests to the node daemon, which knows the target of the service, and its
 * answers back. The device of a socket identifies the guest. Each source port of a guest is a flow,
 * with its own stream to the node daemon and its own socket there, so that answers reach the right
 * port and unrelated senders are not heard. Each datagram counts as one of the guest's requests.
 * Failures are silent, as usual with UDP.
 *
 * INVARIANTS: only a guest's datagram opens a flow; a flow ends with its socket, which ends with
 * the service, the view and the device; no instance has more than MAX_DATAGRAM_FLOWS, all together
 * no more than MAX_DATAGRAM_FLOWS_OF_ALL.
 */
export class DatagramRelay {
  readonly #options: DatagramRelayOptions;
  /** In the order of their last use. */
  readonly #flows = new Map<Instance, Set<DatagramFlow>>();
  #count = 0;

  constructor(options: DatagramRelayOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  attach(instance: Instance, service: ViewService, socket: Socket): void {
    const bySource = new Map<string, DatagramFlow>();
    socket.on('message', (datagram, source) => {
      const refusal = this.#refusalOf(instance, datagram, source);
      if (refusal) {
        this.#options.metrics.refused(refusal);
        return;
      }
      const key = `${source.address} ${source.port}`;
      let flow = bySource.get(key);
      if (!flow) {
        flow = this.#open(instance, service, socket, source, () => bySource.delete(key));
        bySource.set(key, flow);
      }
      this.#use(instance, flow);
      if (!flow.ask(datagram)) this.#options.metrics.refused('datagram');
    });
    socket.on('close', () => {
      for (const flow of [...bySource.values()]) flow.end();
    });
  }

  #refusalOf(
    instance: Instance,
    datagram: Buffer,
    { address }: RemoteInfo,
  ): 'source' | 'kept-out' | 'datagram' | 'rate' | null {
    if (!hasOwnAddress(instance, address)) return 'source';
    if (instance.isKeptOut()) return 'kept-out';
    if (datagram.length > MAX_DATAGRAM_BYTES) return 'datagram';
    return instance.takeRequest(this.#options.clock.monotonicMs()) > 0 ? 'rate' : null;
  }

  #open(
    instance: Instance,
    service: ViewService,
    socket: Socket,
    source: RemoteInfo,
    forget: () => void,
  ): DatagramFlow {
    this.#makeRoom(instance);
    const { metrics, audit, clock, socketPath } = this.#options;
    const flow = new DatagramFlow({
      socketPath,
      uuid: instance.view.uuid,
      service: service.name,
      onAnswer: (answer) => {
        if (socket.getSendQueueSize() > MAX_DATAGRAM_BYTES_WAITING) return;
        socket.send(answer, source.port, source.address, () => undefined);
      },
      onOpened: (status, reason) => {
        audit.request(instance, 'UDP', `service ${service.name}`, status, clock.monotonicMs());
        if (reason === null) return;
        metrics.refused('service');
        audit.failed(instance, 'warn', 'service.failed', { service: service.name, reason });
      },
      onEnd: () => {
        forget();
        this.#remove(instance, flow);
      },
    });
    this.#count++;
    return flow;
  }

  #use(instance: Instance, flow: DatagramFlow): void {
    const flows = this.#flows.get(instance) ?? new Set();
    this.#flows.set(instance, flows);
    flows.delete(flow);
    flows.add(flow);
  }

  #remove(instance: Instance, flow: DatagramFlow): void {
    this.#count--;
    const flows = this.#flows.get(instance);
    flows?.delete(flow);
    if (flows?.size === 0) this.#flows.delete(instance);
  }

  #makeRoom(instance: Instance): void {
    const own = this.#flows.get(instance);
    if (own && own.size >= MAX_DATAGRAM_FLOWS) return endFirst(own);
    if (this.#count < MAX_DATAGRAM_FLOWS_OF_ALL) return;
    let most = own ?? new Set();
    for (const flows of this.#flows.values()) if (flows.size > most.size) most = flows;
    endFirst(most);
  }
}

function endFirst(flows: ReadonlySet<DatagramFlow>): void {
  const [first] = flows;
  first?.end();
}
