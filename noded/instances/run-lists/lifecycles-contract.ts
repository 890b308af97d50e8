import type { Clock } from '#shared/clock/clock.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type {
  LifecycleRecord,
  RunListEnvironment,
  RunListScript,
  ViewLifecycle,
} from '#shared/contract/lifecycle.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { AuditLog } from './audit-log.ts';
import type { CollectedLists } from './collect-run-lists.ts';
import type { KnownParameters } from './plan-lists.ts';

export type Listener = (event: MetadEvent['event'], sequence: number) => void;

export interface LifecycleMachine {
  readonly machine: { readonly uuid: string; readonly startedAtMs: number };
}

export type RunListOwner = Pick<
  InstanceRecord,
  'osType' | 'runLists' | 'communication' | 'dialects'
>;

export interface LifecyclesDependencies {
  readonly instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly machines: {
    get(uuid: string): LifecycleMachine | undefined;
    whenGone(uuid: string): Promise<void>;
    kill(uuid: string): Promise<void>;
    /** Shows the guest what there is now. */
    publish(uuid: string): Promise<void>;
  };
  readonly guestEvents: {
    subscribe(uuid: string, listener: Listener): () => void;
    listenEarly(uuid: string): {
      readonly handOver: (listener: Listener) => () => void;
      readonly stop: () => void;
    };
  };
  /** @throws AppError RUN_LIST_INVALID */
  readonly collect: (instance: RunListOwner) => Promise<CollectedLists | null>;
  readonly audit: AuditLog;
  readonly logger: Logger;
  readonly clock: Clock;
  /** 15 s without. */
  readonly agentSilenceMs?: number;
  /**
   * From when guests are heard until a deadline that an earlier daemon set may ring; 30 s without.
   */
  readonly replayGraceMs?: number;
}

/** A script to be run on demand. */
export interface ScriptRequest {
  /** As in run-lists/operational/. */
  readonly script: string;
  readonly env: RunListEnvironment;
  /** Called with each piece of its output, as soon as the guest sends it. */
  readonly onOutput?: (output: ScriptOutput) => void;
}

/** A piece of output, without secrets. */
export interface ScriptOutput {
  readonly text: string;
  /** Bytes before the piece that were not kept. */
  readonly lostBytes: number;
}

/** The lifecycle of each instance that has run lists; of others it knows nothing. */
export interface Lifecycles {
  /**
   * Whether its guest could be given its lists.
   * @param parameters its OS parameters
   * @throws AppError RUN_LIST_INVALID, INPUT_MISSING
   */
  check(instance: RunListOwner, parameters: KnownParameters): Promise<void>;
  /**
   * Before a machine is started, so that its guest is shown its lists from the first moment on.
   * @param goesOn a reboot: the run stays
   */
  begin(instance: InstanceRecord, goesOn: boolean): Promise<void>;
  follow(kept: LifecycleMachine): void;
  /** The same for a machine that an earlier daemon started; only the record knows its run. */
  followAdopted(kept: LifecycleMachine): void;
  /**
   * From now on what guests say arrives, what they said to no daemon first. Until then no deadline
   * of theirs rings: they may have kept it.
   */
  hear(): void;
  /** It is removed, or starts without a channel. */
  forget(uuid: string): void;
  /**
   * Its part of a view, with the lists that could be read last; undefined without run lists, or
   * where they never could be read.
   */
  planView(
    instance: InstanceRecord,
    parameters: ReadonlySet<string>,
  ): Promise<ViewLifecycle | undefined>;
  /** Its scripts on demand, named as its guest has them. @throws AppError RUN_LIST_INVALID */
  listScripts(instance: RunListOwner): Promise<readonly RunListScript[]>;
  /** As it is now, or was at the end of the last run. */
  current(instance: Pick<InstanceRecord, 'uuid' | 'lifecycle'>): LifecycleRecord | null;
  /** The same, with a reason if the agent of a guest that boots has been silent for long. */
  explain(instance: Pick<InstanceRecord, 'uuid' | 'lifecycle'>): LifecycleRecord | null;
  /** The state of a guest whose machine runs. */
  state(uuid: string): LifecycleRecord['state'] | undefined;
  /** Whether its guest has an agent that will decommission it. */
  isListening(uuid: string): boolean;
  /**
   * Tells the guest how it will go down; resolves when it can see that. Scripts on demand end.
   * @param kind what its scripts are told: a stop may be one half of a reboot
   * @returns the seconds after which the guest's system has ended its decommission list for sure;
   * 0 without an agent that listens
   */
  announce(uuid: string, how: 'reboot' | 'stop' | 'terminate', kind?: 'reboot'): Promise<number>;
  /** Takes that back; nothing when the machine is gone, or boots again. */
  withdraw(uuid: string): Promise<void>;
  /** The guest begins anew without a word of its own. */
  reset(uuid: string): void;
  /**
   * Runs one script and waits for its end; one at a time.
   * @returns its exit status
   * @throws AppError INSTANCE_STATE, GUEST_AGENT_SILENT, or the signal's reason
   */
  run(instance: InstanceRecord, request: ScriptRequest, signal: AbortSignal): Promise<number>;
  /** Resolves with the next thing that happens to it. */
  nextChange(uuid: string, signal: AbortSignal): Promise<void>;
}
