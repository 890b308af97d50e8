import type { Clock } from '#shared/clock/clock.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Logger } from '#shared/log/log.ts';
import type { PromisedTrees } from '../../netboot/promised-trees.ts';
import type { EnterShared } from '../../storage/fencing/enter-shared.ts';
import type { Hypervisor } from '../../vmm/hypervisor.ts';
import type { Machine, MachineExit, MachineNic, MachineSpec } from '../../vmm/machine.ts';
import type { MetadLink } from '../../net/metad-link/metad-link.ts';
import type { ChannelNetwork, ChannelTap } from '../../net/channel/channel-network.ts';
import type { NicTaps } from '../../net/tenant/nic-taps.ts';
import { channelGuestOf, describeMachine, type MachineKind, openNic } from './machine-parts.ts';
import { createShownViews, type MakeView, type ShownViews } from '../view/shown-views.ts';

export interface MachineRequest {
  readonly instance: InstanceRecord;
  readonly kind: MachineKind;
  /**
   * Null disables the channel. Called again after a restart of metad, so it must not use secrets of
   * the job.
   */
  readonly makeView: MakeView | null;
  /** NICs of the instance itself. The appliance has only the channel. */
  readonly withInstanceNics: boolean;
  /** Called after the view is published, so that a seed disk can be made from it. */
  readonly makeSpec: (nics: readonly MachineNic[]) => Promise<MachineSpec>;
  readonly signal?: AbortSignal;
  /** Original start of a guest that migrated to this node. */
  readonly startedAtMs?: number;
}

export interface KeptMachine {
  readonly machine: Machine;
  readonly kind: MachineKind;
  readonly instanceName: string;
  /** TAP of the channel. */
  readonly device: string | null;
  /** The QEMU process has no record. It keeps running with its last view. */
  readonly isOrphan: boolean;
  /** Names of secrets whose values are lost. */
  readonly lostSecrets: readonly string[];
}

interface Entry extends KeptMachine {
  kind: MachineKind;
  isOrphan: boolean;
  instanceName: string;
  makeView: MachineRequest['makeView'];
  readonly cleanedUp: Promise<void>;
}

export interface MachineKeeperDependencies {
  readonly hypervisor: Hypervisor;
  readonly network: ChannelNetwork;
  readonly nicTaps: Pick<NicTaps, 'open' | 'tidy'>;
  readonly metad: MetadLink;
  readonly boots: Pick<PromisedTrees, 'settle' | 'forget'>;
  readonly enterShared: EnterShared;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called when a guest releases a part later than requested, after cleanup on this node. */
  readonly onReleased: (machine: Machine, part: string) => void;
  readonly onExit: (uuid: string, kind: MachineKind, exit: MachineExit) => void;
}

/**
 * Keeps the QEMU processes of this node, each with its TAP, view and process, created in this order
 * and removed in reverse.
 *
 * INVARIANTS: an instance has at most one QEMU process; its view is in metad only while that runs,
 * starts or restarts; `cleanedUp` resolves after the whole cleanup.
 */
export class MachineKeeper {
  readonly #dependencies: MachineKeeperDependencies;
  readonly #running = new Map<string, Entry>();
  /** Instances in a restart, with the TAP of the ended process. */
  readonly #restarting = new Map<string, string | null>();
  readonly #views: ShownViews;

  constructor(dependencies: MachineKeeperDependencies) {
    this.#dependencies = dependencies;
    this.#views = createShownViews(dependencies);
  }

  /** metad refuses revisions older than its own, which a clock set back would produce. */
  continueRevisions(lastRevision: number): void {
    this.#views.continueRevisions(lastRevision);
  }

  get(uuid: string): KeptMachine | undefined {
    return this.#running.get(uuid);
  }

  list(): readonly KeptMachine[] {
    return [...this.#running.values()];
  }

  async start(request: MachineRequest): Promise<Machine> {
    const { network, nicTaps, hypervisor } = this.#dependencies;
    const { instance } = request;
    const former = this.#running.get(instance.uuid);
    if (former?.machine.isRunning() === false) await former.cleanedUp;
    if (this.#running.has(instance.uuid))
      throw new Error(`instance ${instance.uuid} already has a QEMU process`);
    using entry = await this.#dependencies.enterShared(instance, request.kind);
    const signals = [request.signal, entry?.signal].filter((one) => one !== undefined);
    const signal = AbortSignal.any(signals);
    const taps: ChannelTap[] = [];
    let channel: ChannelTap | null = null;
    try {
      const nics: MachineNic[] = [];
      if (request.withInstanceNics) {
        for (const nic of instance.nics) {
          const { nic: made, tap } = await openNic(nicTaps, nic, instance.name);
          if (tap !== null) taps.push(tap);
          nics.push(made);
        }
      }
      if (request.makeView !== null) {
        await network.ensureNamespace();
        channel = await network.openTap(channelGuestOf(instance, request.kind));
        taps.push(channel);
        nics.push({
          kind: 'tap',
          fd: channel.fd,
          mac: instance.channel.mac,
          device: channel.device,
          channel: true,
        });
        const isUp = request.kind === 'moving';
        await this.#views.publish(instance.uuid, channel.device, request.makeView, isUp);
      }
      const spec = await request.makeSpec(nics);
      signal.throwIfAborted();
      const fenced = entry === null ? spec : { ...spec, isFenced: true };
      const machine = await hypervisor.start(fenced, {
        ...describeMachine(request, channel?.device ?? ''),
        signal,
        startedAtMs: request.startedAtMs,
      });
      const device = channel?.device ?? null;
      const origin = { kind: request.kind, instanceName: instance.name, device, isOrphan: false };
      this.#keep(machine, origin, request.makeView);
      return machine;
    } catch (error) {
      await this.#views.drop(instance.uuid);
      for (const tap of taps) tap.close();
      await nicTaps.tidy();
      if (channel !== null) await network.releaseTap(channel.device);
      throw error;
    } finally {
      for (const tap of taps) tap.close();
    }
  }

  /**
   * Restarts an instance without removing its view, whose secrets only metad may have. Keeps the
   * name of the old TAP reserved meanwhile.
   */
  async restart(uuid: string, stopAndStart: () => Promise<void>): Promise<void> {
    this.#restarting.set(uuid, null);
    try {
      await stopAndStart();
    } finally {
      const formerDevice = this.#restarting.get(uuid) ?? null;
      this.#restarting.delete(uuid);
      if (!this.#running.has(uuid)) await this.#views.drop(uuid);
      if (formerDevice !== null) await this.#releaseTap(formerDevice);
    }
  }

  /** Keeps an adopted QEMU process unchanged until its record is found. */
  keepOrphan(machine: Machine, instanceName: string, device: string | null): KeptMachine {
    const origin = { kind: 'run', instanceName, device, isOrphan: true } as const;
    return this.#keep(machine, origin, null);
  }

  /** Marks a QEMU process as an orphan after the loss of its record. */
  makeOrphan(uuid: string): void {
    const entry = this.#running.get(uuid);
    if (entry !== undefined) Object.assign(entry, { isOrphan: true, makeView: null });
  }

  /** Gives an orphan its record again: repairs its TAP and publishes its view. */
  async adopt(instance: InstanceRecord, makeView: MachineRequest['makeView']): Promise<void> {
    const entry = this.#running.get(instance.uuid);
    if (entry === undefined) throw new Error(`instance ${instance.uuid} has no QEMU process`);
    if (entry.device !== null && makeView !== null) {
      await this.#dependencies.network.repairTap(entry.device, channelGuestOf(instance, 'run'));
      await this.#views.publish(instance.uuid, entry.device, makeView);
    }
    Object.assign(entry, { makeView, isOrphan: false, instanceName: instance.name });
    await this.keepRecord(instance);
  }

  /**
   * Changes the kind. The end of a process that is `moving` is not reported for the instance. A
   * `run` is also recorded for the next daemon.
   */
  async become(instance: InstanceRecord, kind: 'run' | 'moving'): Promise<void> {
    const entry = this.#running.get(instance.uuid);
    if (entry === undefined) return;
    Object.assign(entry, { kind, instanceName: instance.name });
    if (kind === 'moving') return;
    const meta = { kind, instance: instance.name, device: entry.device ?? '' };
    await entry.machine.writeMeta(meta);
    await this.keepRecord(instance);
  }

  /**
   * Stores a copy of the record beside the QEMU process, from which orphans.ts can restore it. Does
   * nothing for a stopped instance.
   */
  async keepRecord(instance: InstanceRecord): Promise<void> {
    const entry = this.#running.get(instance.uuid);
    if (entry?.kind !== 'run') return;
    try {
      await entry.machine.writeNote(JSON.stringify(instance));
    } catch (error) {
      // A process that has just ended has no run directory.
      const level = entry.machine.isRunning() ? 'error' : 'debug';
      this.#dependencies.logger[level]('record.not-kept', { uuid: instance.uuid, err: error });
    }
  }

  /** Replaces the view, and the source of views after a restart of metad. */
  async republish(uuid: string, makeView: MakeView): Promise<void> {
    const entry = this.#running.get(uuid);
    if (entry?.device == null) return;
    entry.makeView = makeView;
    await this.#views.publish(uuid, entry.device, makeView);
  }

  /**
   * Replaces the source of later views without publishing, at the end of the job that had the
   * secrets.
   */
  forgetSecrets(uuid: string, makeView: MakeView): void {
    const entry = this.#running.get(uuid);
    if (entry?.makeView != null) entry.makeView = makeView;
  }

  /** Publishes all views after a restart of metad. @returns whether all succeeded */
  async republishAll(): Promise<boolean> {
    let isWhole = true;
    for (const entry of this.#running.values()) {
      if (entry.device === null || entry.makeView === null) continue;
      try {
        await this.#views.publish(entry.machine.uuid, entry.device, entry.makeView);
      } catch (error) {
        this.#dependencies.logger.error('view.not-published', {
          instance: entry.instanceName,
          err: error,
        });
        isWhole = false;
      }
    }
    return isWhole;
  }

  /** Plugs a NIC into the port of its record. @throws AppError QMP */
  async plugNic(uuid: string, nic: InstanceRecord['nics'][number]): Promise<void> {
    const { port } = nic;
    if (port === undefined) throw new Error(`NIC ${nic.uuid} has no port`);
    const entry = this.#running.get(uuid);
    if (entry === undefined) throw new Error(`instance ${uuid} has no QEMU process`);
    const { nicTaps } = this.#dependencies;
    const { nic: made, tap } = await openNic(nicTaps, nic, entry.instanceName);
    try {
      await entry.machine.plug({ uuid: nic.uuid, port, nic: made });
    } catch (error) {
      tap?.close();
      await nicTaps.tidy();
      throw error;
    } finally {
      tap?.close();
    }
  }

  /**
   * Unplugs a disk or NIC and cleans up on this node.
   * @returns false if the guest keeps it for now; `onReleased` reports the release
   */
  async unplug(uuid: string, part: string): Promise<boolean> {
    const entry = this.#running.get(uuid);
    if (entry === undefined) return true;
    const isOut = await entry.machine.unplug(part);
    if (isOut) await this.#dependencies.nicTaps.tidy();
    return isOut;
  }

  /** Ends the QEMU process and waits for the cleanup. */
  async kill(uuid: string): Promise<void> {
    const entry = this.#running.get(uuid);
    if (entry === undefined) return;
    await entry.machine.kill();
    await entry.cleanedUp;
  }

  /** Waits for the cleanup of an ended QEMU process. */
  async whenGone(uuid: string): Promise<void> {
    await this.#running.get(uuid)?.cleanedUp;
  }

  #keep(
    machine: Machine,
    origin: Omit<KeptMachine, 'machine' | 'lostSecrets'>,
    makeView: MachineRequest['makeView'],
  ): KeptMachine {
    machine.onRelease = (part) => {
      void this.#dependencies.nicTaps.tidy().then(() => {
        this.#dependencies.onReleased(machine, part);
      });
    };
    const cleanedUp = machine.exited.then((exit) => this.#cleanUp(machine, origin.device, exit));
    const views = this.#views;
    const entry: Entry = {
      machine,
      ...origin,
      makeView,
      cleanedUp,
      get lostSecrets() {
        return views.lostSecrets(machine.uuid);
      },
    };
    this.#running.set(machine.uuid, entry);
    const { instanceName, kind, device } = origin;
    this.#dependencies.logger.info('machine.kept', {
      instance: instanceName,
      kind,
      machine: machine.pid,
      device,
    });
    return entry;
  }

  async #cleanUp(machine: Machine, device: string | null, exit: MachineExit): Promise<void> {
    const entry = this.#running.get(machine.uuid);
    const { logger, nicTaps, onExit } = this.#dependencies;
    logger.info('machine.ended', {
      instance: entry?.instanceName,
      kind: entry?.kind,
      reason: exit.reason,
    });
    if (this.#restarting.has(machine.uuid)) {
      this.#restarting.set(machine.uuid, device);
    } else {
      await this.#views.drop(machine.uuid);
      if (device !== null) await this.#releaseTap(device);
    }
    await nicTaps.tidy();
    this.#running.delete(machine.uuid);
    if (entry !== undefined) onExit(machine.uuid, entry.kind, exit);
  }

  async #releaseTap(device: string): Promise<void> {
    const { network, logger } = this.#dependencies;
    try {
      await network.releaseTap(device);
    } catch (error) {
      logger.error('tap.not-released', { device, err: error });
    }
  }
}
