import { Readable, type Duplex } from 'node:stream';
import type { GuestState } from '#shared/contract/guest-handover.ts';
import type { MetadEvent, MetadStatus } from '#shared/contract/metad-control.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import type { Secret } from '#shared/secret/secret.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { AdoptedMachine, Hypervisor, StartOptions } from '../../../noded/vmm/hypervisor.ts';
import type { AcceleratorChoice, MachineSpec } from '../../../noded/vmm/machine.ts';
import type { MetadLink } from '../../../noded/net/metad-link/metad-link.ts';
import type { QueueRead, TreeAnswer } from '../../../noded/net/metad-link/metad-client.ts';
import type { ChannelNetwork, ChannelTap } from '../../../noded/net/channel/channel-network.ts';
import { FakeMachine } from './fake-machine.ts';

/** Starts machines that run nothing. */
export class FakeHypervisor implements Hypervisor {
  readonly machines: FakeMachine[] = [];
  readonly specs: MachineSpec[] = [];
  readonly metas: StartOptions['meta'][] = [];
  survivors: AdoptedMachine[] = [];
  consoleSocket = '/nowhere/console.sock';
  failure: Error | undefined = undefined;

  start(spec: MachineSpec, options: StartOptions = {}): Promise<FakeMachine> {
    if (this.failure !== undefined) throw this.failure;
    const machine = new FakeMachine(spec.uuid, this.consoleSocket);
    machine.note = options.note;
    this.machines.push(machine);
    this.specs.push(spec);
    this.metas.push(options.meta);
    return Promise.resolve(machine);
  }

  adopt(): Promise<readonly AdoptedMachine[]> {
    return Promise.resolve(this.survivors);
  }

  async cut(uuid: string): Promise<void> {
    for (const machine of this.machines) if (machine.uuid === uuid) await machine.kill();
  }

  letGo(): void {
    this.machines.length = 0;
  }

  probeAccelerator(): Promise<AcceleratorChoice> {
    return Promise.resolve({ accelerator: 'tcg', reason: 'KVM does not answer' });
  }
}

/** Hands out TAP names; descriptors are no real ones. */
export class FakeNetwork implements ChannelNetwork {
  readonly namespacePath = '/run/netns/none';
  readonly taps = new Set<string>();
  readonly repaired: string[] = [];
  openDescriptors = 0;
  failure: Error | undefined = undefined;
  #count = 0;

  ensureNamespace(): Promise<void> {
    return Promise.resolve();
  }

  openTap(): Promise<ChannelTap> {
    const device = `gnt.com.${this.#count}`;
    this.#count += 1;
    this.taps.add(device);
    this.openDescriptors += 1;
    let isOpen = true;
    const close = (): void => {
      if (isOpen) this.openDescriptors -= 1;
      isOpen = false;
    };
    return Promise.resolve({ device, fd: -1, close });
  }

  repairTap(device: string): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    this.repaired.push(device);
    return Promise.resolve();
  }

  releaseTap(device: string): Promise<void> {
    this.taps.delete(device);
    return Promise.resolve();
  }

  listTaps(): Promise<readonly string[]> {
    return Promise.resolve([...this.taps]);
  }

  setServicePorts(): Promise<void> {
    return Promise.resolve();
  }

  removeNamespace(): Promise<boolean> {
    return Promise.resolve(true);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Keeps views as metad does: in memory, and never back to an older revision. */
export class FakeMetad implements MetadLink {
  readonly pid = 1;
  readonly restarts = 0;
  readonly adopted = false;
  readonly views = new Map<string, InstanceView>();
  /** Of each view that was put: whether its guest was started before. */
  readonly guestsUp: boolean[] = [];
  readonly written: Buffer[] = [];
  readonly waiting: Buffer[] = [];
  readonly tokensReplaced: string[] = [];
  isDown = false;
  guestPort: () => Promise<Duplex> = () =>
    Promise.reject(new AppError('GUEST_UNREACHABLE', 'nothing listens'));

  putView(view: InstanceView, isGuestUp = false): Promise<readonly string[]> {
    this.#refuseWhenDown();
    const old = this.views.get(view.uuid);
    if (old !== undefined && old.revision >= view.revision) {
      throw new AppError('METAD_REFUSED', `revision ${view.revision} is not newer`);
    }
    this.views.set(view.uuid, view);
    this.guestsUp.push(isGuestUp);
    const parameters = Object.entries(view.osParameters);
    return Promise.resolve(
      parameters.flatMap(([name, { value }]) => (value === null ? [name] : [])),
    );
  }

  deleteView(uuid: string): Promise<void> {
    this.#refuseWhenDown();
    this.views.delete(uuid);
    return Promise.resolve();
  }

  status(): Promise<MetadStatus> {
    return Promise.resolve({
      pid: 1,
      protocol: 1,
      startedAtMs: 0,
      instances: [...this.views.values()].map(({ uuid, revision, channel, mode }) => ({
        uuid,
        revision,
        mode,
        device: channel.device,
      })),
    });
  }

  tree(uuid: string, path: string): Promise<TreeAnswer> {
    return Promise.resolve({
      status: 200,
      contentType: 'text/plain',
      body: Buffer.from(`${uuid} ${path}`),
    });
  }

  readQueue(): Promise<QueueRead | null> {
    const bytes = this.waiting.shift();
    return Promise.resolve(bytes === undefined ? null : { bytes, nextOffset: 7 });
  }

  writeQueue(_uuid: string, bytes: Uint8Array): Promise<void> {
    this.written.push(Buffer.from(bytes));
    return Promise.resolve();
  }

  connect(): Promise<Duplex> {
    return this.guestPort();
  }

  leave(): Promise<GuestState> {
    return Promise.reject(new Error('nobody leaves here'));
  }

  stay(): Promise<void> {
    return Promise.resolve();
  }

  arrive(): Promise<void> {
    return Promise.resolve();
  }

  replaceTokens(uuid: string): Promise<void> {
    this.tokensReplaced.push(uuid);
    return Promise.resolve();
  }

  secrets(): Promise<ReadonlyMap<string, Secret>> {
    return Promise.resolve(new Map());
  }

  metrics(): Promise<string> {
    return Promise.resolve('');
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  onRestarted(): void {
    // Nothing of it restarts.
  }

  events(): AsyncIterable<MetadEvent> {
    return Readable.from([]);
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  detach(): Promise<void> {
    return Promise.resolve();
  }

  #refuseWhenDown(): void {
    if (this.isDown) throw new AppError('METAD_UNAVAILABLE', 'gnt-metad does not answer');
  }
}
