import type { ViewService } from '#shared/contract/view.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import type { GuestAgent } from '../view/guest-agent.ts';
import { servicesOf } from './name-service.ts';
import type { ServedView } from '../view/served-view.ts';
import type { EventLog } from './event-log.ts';
import { MAX_RENDERED_SITES } from '../config/limits.ts';
import { Instance } from './instance.ts';
import { RenderedSites } from './rendered-sites.ts';

export interface Binding extends AsyncDisposable {
  readonly device: string;
  isCurrent(): boolean;
  setHopLimit(hopLimit: number): void;
  setServices(services: readonly ViewService[]): void;
}

export interface PutOptions {
  /** The guest was started before. */
  readonly isGuestUp: boolean;
}

/** The instances that a control socket can address. */
export interface InstanceDirectory {
  get(uuid: string): Instance | undefined;
  instances(): readonly Instance[];
  put(view: ServedView, options?: PutOptions): Promise<void>;
  remove(uuid: string): Promise<void>;
}

export type OpenBinding = (instance: Instance, device: string) => Promise<Binding>;

export interface RegistryOptions {
  readonly open: OpenBinding;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly guestAgent?: GuestAgent;
  readonly firstQueueOffset?: number;
}

interface Entry {
  readonly instance: Instance;
  binding: Binding;
}

/**
 * The instances of this node that have a channel.
 *
 * INVARIANTS: one instance per device; changes of one instance are serial; an instance is visible
 * to its guest only while it is in the registry.
 */
export class Registry implements InstanceDirectory {
  readonly #entries = new Map<string, Entry>();
  readonly #owners = new Map<string, Instance>();
  /** Serialises the changes of each instance. */
  readonly #changes = new SerialQueue<string>();
  readonly #open: OpenBinding;
  readonly #events: EventLog;
  readonly #clock: Clock;
  readonly #rendered = new RenderedSites(MAX_RENDERED_SITES);

  readonly #guestAgent: GuestAgent | undefined;
  readonly #firstQueueOffset: number;

  constructor(options: RegistryOptions) {
    this.#open = options.open;
    this.#events = options.events;
    this.#clock = options.clock;
    this.#guestAgent = options.guestAgent;
    this.#firstQueueOffset = options.firstQueueOffset ?? 0;
  }

  get(uuid: string): Instance | undefined {
    return this.#entries.get(uuid)?.instance;
  }

  instances(): readonly Instance[] {
    return [...this.#entries.values()].map(({ instance }) => instance);
  }

  /** @throws AppError CONFLICT for an older view or a device of another instance; NETWORK_SETUP */
  async put(pushed: ServedView, { isGuestUp }: PutOptions = { isGuestUp: false }): Promise<void> {
    const view = { ...pushed, ...(this.#guestAgent && { guestAgent: this.#guestAgent }) };
    await this.#changes.run(view.uuid, async () => {
      this.#check(view);
      const entry = this.#entries.get(view.uuid);
      if (!entry) return await this.#add(view, isGuestUp);
      if (!isGuestUp) entry.instance.beginAnew();
      await this.#update(entry, view);
    });
  }

  async remove(uuid: string): Promise<void> {
    await this.#changes.run(uuid, async () => {
      const entry = this.#entries.get(uuid);
      if (!entry) return;
      this.#entries.delete(uuid);
      this.#owners.delete(entry.instance.view.channel.device);
      this.#events.forget(uuid);
      await entry.binding[Symbol.asyncDispose]();
      entry.instance.end();
    });
  }

  async removeAll(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map(async (uuid) => await this.remove(uuid)));
  }

  async #add(view: ServedView, isGuestUp: boolean): Promise<void> {
    const instance = new Instance(view, this.#clock, this.#rendered, this.#firstQueueOffset);
    if (isGuestUp) instance.inherit();
    const binding = await this.#open(instance, view.channel.device);
    // Another instance may have taken the device during the wait.
    const owner = this.#owners.get(view.channel.device);
    if (owner) {
      await binding[Symbol.asyncDispose]();
      throw deviceConflict(view.channel.device, owner);
    }
    this.#entries.set(view.uuid, { instance, binding });
    this.#owners.set(view.channel.device, instance);
    binding.setServices(servicesOf(view));
  }

  async #update(entry: Entry, view: ServedView): Promise<void> {
    const { instance } = entry;
    const isMoved = entry.binding.device !== view.channel.device || !entry.binding.isCurrent();
    if (isMoved) {
      // Close the old sockets first: new ones could not bind to the same device beside them.
      await entry.binding[Symbol.asyncDispose]();
      instance.closeConnections();
      // Another QEMU process: events of the previous guest do not apply to this one.
      this.#events.forget(view.uuid);
      entry.binding = await this.#open(instance, view.channel.device);
    } else {
      entry.binding.setHopLimit(view.channel.hopLimit);
    }
    if (view.channel.ip !== instance.view.channel.ip) instance.closeConnections();
    this.#owners.delete(instance.view.channel.device);
    this.#owners.set(view.channel.device, instance);
    instance.replaceView(view);
    entry.binding.setServices(servicesOf(view));
  }

  #check(view: ServedView): void {
    const known = this.#entries.get(view.uuid)?.instance.view;
    if (known && view.revision < known.revision) {
      throw new AppError(
        'CONFLICT',
        `view of ${view.name} has revision ${view.revision}, but revision ${known.revision} is already served`,
        { details: { revision: known.revision } },
      );
    }
    const owner = this.#owners.get(view.channel.device);
    if (owner && owner.view.uuid !== view.uuid) throw deviceConflict(view.channel.device, owner);
  }
}

function deviceConflict(device: string, owner: Instance): AppError {
  return new AppError('CONFLICT', `device ${device} belongs to instance ${owner.view.name}`, {
    details: { device, instance: owner.view.uuid },
  });
}
