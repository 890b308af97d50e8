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
    /** Publishes the present view. */
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
  /** Default 15 s. */
  readonly agentSilenceMs?: number;
  /** Time between `hear` and deadlines set by an earlier daemon. Default 30 s. */
  readonly replayGraceMs?: number;
}

export interface ScriptRequest {
  /** Name below run-lists/operational/. */
  readonly script: string;
  readonly env: RunListEnvironment;
  /** Called with each piece of output as it arrives. */
  readonly onOutput?: (output: ScriptOutput) => void;
}

/** A piece of output, without secrets. */
export interface ScriptOutput {
  readonly text: string;
  /** Bytes dropped before this piece. */
  readonly lostBytes: number;
}

/** Tracks the lifecycle of each instance with run lists. Ignores others. */
export interface Lifecycles {
  /**
   * Checks whether the guest can get its lists.
   * @param parameters its OS parameters
   * @throws AppError RUN_LIST_INVALID, INPUT_MISSING
   */
  check(instance: RunListOwner, parameters: KnownParameters): Promise<void>;
  /**
   * Prepares the first view before a start.
   * @param goesOn keep the run, for a reboot
   */
  begin(instance: InstanceRecord, goesOn: boolean): Promise<void>;
  follow(kept: LifecycleMachine): void;
  /** Follows an adopted instance, whose run is only in its record. */
  followAdopted(kept: LifecycleMachine): void;
  /**
   * Starts the processing of guest events, beginning with missed ones. Deadlines wait until then,
   * because missed events may satisfy them.
   */
  hear(): void;
  /** Removes the lifecycle of an instance that was removed or starts without a channel. */
  forget(uuid: string): void;
  /** Returns its part of a view, with the last readable lists; undefined without run lists. */
  planView(
    instance: InstanceRecord,
    parameters: ReadonlySet<string>,
  ): Promise<ViewLifecycle | undefined>;
  /**
   * Returns the scripts on demand with their names in the guest.
   * @throws AppError RUN_LIST_INVALID
   */
  listScripts(instance: RunListOwner): Promise<readonly RunListScript[]>;
  /** Returns the present state, or that at the end of the last run. */
  current(instance: Pick<InstanceRecord, 'uuid' | 'lifecycle'>): LifecycleRecord | null;
  /** Returns the same, with a reason for a long silence of a booting guest's agent. */
  explain(instance: Pick<InstanceRecord, 'uuid' | 'lifecycle'>): LifecycleRecord | null;
  /** Returns the state of a running guest. */
  state(uuid: string): LifecycleRecord['state'] | undefined;
  /** Returns whether the guest has an agent that will run the decommission list. */
  isListening(uuid: string): boolean;
  /**
   * Announces a shutdown to the guest. Resolves when it is published. Ends scripts on demand.
   * @param kind reported to the scripts: a stop may be part of a reboot
   * @returns the maximum seconds of the decommission list; 0 without a listening agent
   */
  announce(uuid: string, how: 'reboot' | 'stop' | 'terminate', kind?: 'reboot'): Promise<number>;
  /** Cancels the announcement. Does nothing after the end or a new boot. */
  withdraw(uuid: string): Promise<void>;
  /** Reports a reset that the guest did not announce. */
  reset(uuid: string): void;
  /**
   * Runs one script and waits for its end; one at a time.
   * @returns its exit status
   * @throws AppError INSTANCE_STATE, GUEST_AGENT_SILENT, or the signal's reason
   */
  run(instance: InstanceRecord, request: ScriptRequest, signal: AbortSignal): Promise<number>;
  /** Resolves at the next change of the instance. */
  nextChange(uuid: string, signal: AbortSignal): Promise<void>;
}
