import type { InstanceRecord } from '#shared/contract/instance.ts';
import type {
  LifecycleCommand,
  LifecycleRecord,
  RunListEnvironment,
} from '#shared/contract/lifecycle.ts';
import type { CollectedLists } from './collect-run-lists.ts';
import { lifecycleTermsOf } from './lifecycle-terms.ts';
import type { ScriptOutput } from './lifecycles-contract.ts';
import type { LifecycleTerms } from './plan-lifecycle.ts';

/** State of a running instance with run lists. */
export interface LifecycleEntry {
  record: LifecycleRecord;
  terms: Omit<LifecycleTerms, 'nowMs'>;
  /** Lists of the last successful read. */
  lists: CollectedLists;
  command: {
    readonly wanted: LifecycleCommand;
    readonly env: RunListEnvironment;
    readonly onOutput: ((output: ScriptOutput) => void) | undefined;
  } | null;
  /** Timer of the deadline. */
  alarm: NodeJS.Timeout | null;
}

/** Returns whether the guest may be running its boot or decommission list. */
export function runsList({ state, progress }: LifecycleRecord): boolean {
  if (progress.boot === null || state === 'failed') return false;
  return progress.state === 'booting' || progress.state === 'decommissioning';
}

export function newEntry(
  record: LifecycleRecord,
  terms: LifecycleEntry['terms'],
  lists: CollectedLists,
): LifecycleEntry {
  return { record, terms, lists, command: null, alarm: null };
}

export function termsOf(
  instance: InstanceRecord,
  { lists }: CollectedLists,
): LifecycleEntry['terms'] {
  return {
    ...lifecycleTermsOf(instance),
    hasDecommissionList: lists.decommission.length > 0,
  };
}
