import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_TIMER_MS } from '#shared/abort/alarm.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { WakeCalls } from '#shared/abort/wake-calls.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import {
  AGENT_STOP_GRACE_S,
  type LifecycleRecord,
  type RunListScript,
  type ViewLifecycle,
} from '#shared/contract/lifecycle.ts';
import { formatLine, formatOutput } from './audit-log.ts';
import {
  type LifecycleEntry,
  newEntry,
  runsList,
  termsOf,
  explainSilence,
} from './lifecycle-entry.ts';
import { AGAIN_MS, LifecycleStore } from './lifecycle-store.ts';
import type {
  LifecycleMachine,
  Lifecycles,
  LifecyclesDependencies,
  Listener,
  RunListOwner,
  ScriptRequest,
} from './lifecycles-contract.ts';
import { beginRun, type LifecycleHappening, planLifecycle } from './plan-lifecycle.ts';
import {
  type KnownParameters,
  numberedName,
  planLists,
  refuseImpossibleInputs,
  refuseMissingInputs,
} from './plan-lists.ts';
import { notUp, silentAgent } from './script-refusals.ts';
import { ViewPublisher } from './view-publisher.ts';

/** Limit for an agent's reaction to a command. */
const AGENT_SILENCE_MS = 15_000;
/** Limit for the replay of missed guest events to a new daemon. */
const REPLAY_GRACE_MS = 30_000;

export function createLifecycles(dependencies: LifecyclesDependencies): Lifecycles {
  return new KnownLifecycles(dependencies);
}

/**
 * INVARIANTS: a running instance with run lists has an entry; `planLifecycle` makes every change of
 * its record, which is written until the store has it; a command is published before the wait for
 * it.
 */
class KnownLifecycles implements Lifecycles {
  readonly #dependencies: LifecyclesDependencies;
  readonly #store: LifecycleStore;
  readonly #entries = new Map<string, LifecycleEntry>();
  readonly #calls = new WakeCalls();
  readonly #publisher: ViewPublisher;
  #isHearing = false;

  constructor(dependencies: LifecyclesDependencies) {
    this.#dependencies = dependencies;
    const { instances, machines, logger } = dependencies;
    this.#store = new LifecycleStore(instances, logger);
    this.#publisher = new ViewPublisher((uuid) => machines.publish(uuid), logger);
  }

  async check(instance: RunListOwner, parameters: KnownParameters): Promise<void> {
    const lists = await this.#dependencies.collect(instance);
    const inputs = instance.runLists?.inputs ?? {};
    if (lists === null) return;
    refuseMissingInputs(lists, { parameters: new Set(parameters.keys()), inputs });
    refuseImpossibleInputs(lists, { parameters, inputs });
  }

  async begin(instance: InstanceRecord, goesOn: boolean): Promise<void> {
    const lists = await this.#dependencies.collect(instance);
    const former = this.current(instance);
    this.#drop(instance.uuid);
    if (lists === null) return;
    const terms = termsOf(instance, lists);
    const nowMs = this.#dependencies.clock.now();
    const run = (goesOn ? former?.run : undefined) ?? randomUUID();
    // metad's sequence continues across QEMU processes of an instance.
    const sequence = former?.sequence ?? 0;
    const record = { ...beginRun(run, 0, { ...terms, nowMs }), sequence };
    this.#entries.set(instance.uuid, newEntry(record, terms, lists));
  }

  follow({ machine }: LifecycleMachine): void {
    const { uuid, startedAtMs } = machine;
    const entry = this.#entries.get(uuid);
    if (entry === undefined) void this.#store.forgetFormer(uuid);
    else this.#replace(uuid, entry, { ...entry.record, runStartedAtMs: startedAtMs });
    this.#listen(machine, this.#dependencies.guestEvents.subscribe(uuid, this.#hears(uuid)));
  }

  followAdopted({ machine }: LifecycleMachine): void {
    const { uuid } = machine;
    const early = this.#dependencies.guestEvents.listenEarly(uuid);
    let { stop } = early;
    let isGone = false;
    this.#listen(machine, () => {
      isGone = true;
      stop();
    });
    const begin = async (): Promise<void> => {
      let isOutdated = false;
      while (!isGone) {
        try {
          const instance = await this.#dependencies.instances.findByUuid(uuid);
          if (instance !== undefined) {
            // The guest still sees the announcement of the former daemon's job.
            isOutdated ||= instance.lifecycle?.announced != null;
            await this.#ensure(instance);
            break;
          }
        } catch (error) {
          this.#dependencies.logger.warn('lifecycle.not-read', { uuid, err: error });
          isOutdated = true;
        }
        await sleep(AGAIN_MS, undefined, { ref: false });
      }
      if (isGone) return;
      stop = early.handOver(this.#hears(uuid));
      if (isOutdated) void this.#publisher.publish(uuid);
    };
    void begin();
  }

  hear(): void {
    this.#isHearing = true;
    const { replayGraceMs = REPLAY_GRACE_MS } = this.#dependencies;
    for (const [uuid, entry] of this.#entries) this.#arm(uuid, entry, replayGraceMs);
  }

  forget(uuid: string): void {
    this.#drop(uuid);
    void this.#store.forgetFormer(uuid);
  }

  async planView(
    instance: InstanceRecord,
    parameters: ReadonlySet<string>,
  ): Promise<ViewLifecycle | undefined> {
    try {
      await this.#ensure(instance);
    } catch (error) {
      // A bad file in the cluster's folder must not cost a guest its whole view.
      this.#dependencies.logger.warn('lifecycle.not-read', { uuid: instance.uuid, err: error });
    }
    const entry = this.#entries.get(instance.uuid);
    if (entry === undefined) return undefined;
    const { record, command, terms, lists } = entry;
    return {
      status: {
        state: record.state,
        run: record.run,
        kind: record.kind,
        deadlineMs: record.deadlineMs,
        decommissionTimeoutS: terms.decommissionTimeoutS,
        next: record.announced ?? command?.wanted ?? null,
      },
      progress: record.progress,
      ...planLists(lists, { parameters, inputs: instance.runLists?.inputs ?? {} }),
      commandEnv: command?.env ?? {},
    };
  }

  async listScripts(instance: RunListOwner): Promise<readonly RunListScript[]> {
    const lists = await this.#dependencies.collect(instance);
    return (lists?.lists.operational ?? []).map((script, index) => ({
      ...script,
      name: numberedName(index, script),
    }));
  }

  current({ uuid, lifecycle }: Pick<InstanceRecord, 'uuid' | 'lifecycle'>): LifecycleRecord | null {
    return this.#entries.get(uuid)?.record ?? lifecycle;
  }

  explain(instance: Pick<InstanceRecord, 'uuid' | 'lifecycle'>): LifecycleRecord | null {
    const record = this.current(instance);
    return record && explainSilence(record, this.#dependencies.clock.now());
  }

  state(uuid: string): LifecycleRecord['state'] | undefined {
    return this.#entries.get(uuid)?.record.state;
  }

  isListening(uuid: string): boolean {
    const record = this.#entries.get(uuid)?.record;
    if (record === undefined || record.progress.boot === null) return false;
    return ['operational', 'stranded', 'decommissioning'].includes(record.state);
  }

  async announce(
    uuid: string,
    how: 'reboot' | 'stop' | 'terminate',
    kind?: 'reboot',
  ): Promise<number> {
    const entry = this.#entries.get(uuid);
    if (entry === undefined) return 0;
    const timeoutS = this.isListening(uuid)
      ? entry.terms.decommissionTimeoutS + AGENT_STOP_GRACE_S
      : 0;
    const command = { do: how, ...(kind && { kind }), entry: randomUUID() };
    this.#take(uuid, { type: 'announced', command });
    await this.#publisher.publish(uuid);
    return timeoutS;
  }

  async withdraw(uuid: string): Promise<void> {
    if (this.#entries.get(uuid)?.record.announced == null) return;
    this.#take(uuid, { type: 'withdrawn' });
    await this.#publisher.publish(uuid);
  }

  reset(uuid: string): void {
    this.#take(uuid, { type: 'reset' });
  }

  async run(
    instance: InstanceRecord,
    { script, env, onOutput }: ScriptRequest,
    signal: AbortSignal,
  ): Promise<number> {
    const { uuid, name } = instance;
    const { agentSilenceMs = AGENT_SILENCE_MS } = this.#dependencies;
    const entry = this.#entries.get(uuid);
    if (entry === undefined || !this.#isUp(uuid)) throw notUp(name, entry?.record);
    const wanted = { do: 'run', entry: randomUUID(), script } as const;
    using silence = startDeadline(signal, agentSilenceMs, () => silentAgent(name, agentSilenceMs));
    entry.command = { wanted, env, onOutput };
    this.#say(uuid, `*RS> Wanted: ${script} as ${wanted.entry}`);
    try {
      await this.#publisher.publish(uuid);
      for (;;) {
        const { progress } = entry.record;
        if (progress.last?.entry === wanted.entry) return progress.last.status;
        if (this.#entries.get(uuid) !== entry || !this.#isUp(uuid)) throw notUp(name, entry.record);
        const isTaken = progress.entry === wanted.entry;
        const waits = isTaken ? signal : silence.signal;
        waits.throwIfAborted();
        await this.nextChange(uuid, waits);
      }
    } finally {
      entry.command = null;
      await this.#publisher.publish(uuid);
    }
  }

  async nextChange(uuid: string, signal: AbortSignal): Promise<void> {
    await this.#calls.next(uuid, signal);
  }

  #isUp(uuid: string): boolean {
    const record = this.#entries.get(uuid)?.record;
    if (record === undefined || record.announced !== null) return false;
    return record.state === 'operational' || record.state === 'stranded';
  }

  /**
   * Updates the entry of a running instance: lists may have changed, and a new daemon finds the run
   * in the record.
   * @throws AppError RUN_LIST_INVALID; the entry is unchanged
   */
  async #ensure(instance: InstanceRecord): Promise<void> {
    const { uuid, lifecycle } = instance;
    const { communication } = asItRuns(instance);
    const lists = await this.#dependencies.collect({ ...instance, communication });
    const known = this.#entries.get(uuid);
    if (lists === null) {
      if (known === undefined) return;
      this.forget(uuid);
      this.#calls.wake(uuid);
      return;
    }
    if (known !== undefined) {
      // The content of a running list is fixed when it begins.
      if (!runsList(known.record)) known.lists = lists;
      known.terms = termsOf(instance, known.lists);
      return;
    }
    const terms = termsOf(instance, lists);
    const kept = this.#dependencies.machines.get(uuid);
    if (kept === undefined) return;
    const { startedAtMs } = kept.machine;
    const isOfRun = lifecycle?.runStartedAtMs === startedAtMs;
    const { clock, replayGraceMs = REPLAY_GRACE_MS } = this.#dependencies;
    // A guest older than this daemon has no boot deadline.
    const fresh = beginRun(randomUUID(), startedAtMs, { nowMs: clock.now(), bootTimeoutS: null });
    // No job of this daemon will cancel an announcement of the former daemon.
    const entry = newEntry(isOfRun ? { ...lifecycle, announced: null } : fresh, terms, lists);
    this.#entries.set(uuid, entry);
    // Missed events may satisfy a deadline that passed meanwhile.
    this.#arm(uuid, entry, replayGraceMs);
    if (!isOfRun || lifecycle.announced !== null) void this.#store.keep(uuid, entry);
  }

  #hears(uuid: string): Listener {
    return (event, sequence) => {
      if (event.type === 'lifecycle') {
        this.#take(uuid, { event: event.event, progress: event.progress, sequence });
      } else if (event.type === 'lifecycle-output') {
        const entry = this.#entries.get(uuid);
        if (entry === undefined || event.run !== entry.record.run) return;
        if (sequence <= entry.record.sequence) return;
        if (event.entry === entry.command?.wanted.entry) entry.command.onOutput?.(event);
        const lost = event.lostBytes > 0 ? `  … ${event.lostBytes} more bytes were dropped\n` : '';
        this.#append(uuid, `${lost}${event.text === '' ? '' : formatOutput(event.text)}`, sequence);
      }
    };
  }

  /** @param stop ends the subscription with the QEMU process */
  #listen({ uuid, startedAtMs }: LifecycleMachine['machine'], stop: () => void): void {
    void this.#dependencies.machines.whenGone(uuid).then(() => {
      stop();
      // A reboot by stop and start may have begun.
      if (this.#entries.get(uuid)?.record.runStartedAtMs === startedAtMs) {
        this.#take(uuid, { type: 'gone' });
      }
      this.#calls.wake(uuid);
    });
  }

  #take(uuid: string, happening: LifecycleHappening): void {
    const { clock, logger } = this.#dependencies;
    const entry = this.#entries.get(uuid);
    if (entry === undefined) return;
    const terms = { ...entry.terms, nowMs: clock.now() };
    const { record, actions } = planLifecycle(entry.record, happening, terms);
    if (record === entry.record) return;
    const before = entry.record.state;
    this.#replace(uuid, entry, record);
    const sequence = 'event' in happening ? happening.sequence : undefined;
    for (const action of actions) {
      if (action.do === 'audit') this.#say(uuid, action.line, sequence);
      else if (action.do === 'publish') void this.#publisher.publish(uuid);
      else void this.#end(uuid, action.do);
    }
    if (before !== record.state)
      logger.info('lifecycle.state', { uuid, state: record.state, kind: record.kind });
  }

  /** An unavailable store must not keep the guest running. */
  async #end(uuid: string, how: 'cut-power' | 'stop'): Promise<void> {
    if (how === 'stop') await this.#store.putDown(uuid);
    await this.#dependencies.machines.kill(uuid);
  }

  #replace(uuid: string, entry: LifecycleEntry, record: LifecycleRecord): void {
    const isOtherDeadline = entry.record.deadlineMs !== record.deadlineMs;
    entry.record = record;
    if (isOtherDeadline || entry.alarm === null) this.#arm(uuid, entry);
    this.#calls.wake(uuid);
    void this.#store.keep(uuid, entry);
  }

  #arm(uuid: string, entry: LifecycleEntry, leastMs = 1): void {
    clearTimeout(entry.alarm ?? undefined);
    const { deadlineMs } = entry.record;
    if (deadlineMs === null || !this.#isHearing) {
      entry.alarm = null;
      return;
    }
    const leftMs = Math.max(leastMs, deadlineMs - this.#dependencies.clock.now());
    const ring = (): void => {
      if (this.#entries.get(uuid) !== entry) return;
      this.#take(uuid, { type: 'deadline' });
      // The clock was set back, or the timer was early.
      if (entry.record.deadlineMs === deadlineMs) this.#arm(uuid, entry);
    };
    entry.alarm = setTimeout(ring, Math.min(leftMs, MAX_TIMER_MS)).unref();
  }

  #drop(uuid: string): void {
    clearTimeout(this.#entries.get(uuid)?.alarm ?? undefined);
    this.#entries.delete(uuid);
  }

  #say(uuid: string, line: string, sequence?: number): void {
    this.#append(uuid, formatLine(line, this.#dependencies.clock.now()), sequence);
  }

  #append(uuid: string, text: string, sequence?: number): void {
    this.#dependencies.audit.append(uuid, text, sequence).catch((error: unknown) => {
      // Scripts run even without an audit log.
      this.#dependencies.logger.warn('audit.not-written', { uuid, err: error });
    });
  }
}
