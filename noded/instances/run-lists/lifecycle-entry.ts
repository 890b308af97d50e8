import type { InstanceRecord } from '#shared/contract/instance.ts';
import {
  type LifecycleCommand,
  type LifecycleRecord,
  type RunListEnvironment,
  SILENT_AGENT,
} from '#shared/contract/lifecycle.ts';
import type { CollectedLists } from './collect-run-lists.ts';
import type { ScriptOutput } from './lifecycles-contract.ts';
import type { LifecycleTerms } from './plan-lifecycle.ts';
import { hypervisorParameters } from '#shared/contract/parameter-keys.ts';

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

const DECOMMISSION_TIMEOUT_S = hypervisorParameters.decommission_timeout.default;
/** Maximum of `-H decommission_timeout` without a tag, and with each tag. */
const MAX_TIMEOUT_S = 50 * 60;
const MAX_TIMEOUTS_S: ReadonlyMap<string, number> = new Map([
  ['rs_decommissioning:delay=medium', 110 * 60],
  ['rs_decommissioning:delay=long', 230 * 60],
]);
/** Limit of the boot list with the tag `rs_launch:type=auto`. */
const BOOT_TIMEOUT_S = 45 * 60;

/** Returns the guest's limits by hypervisor parameter and tags. */
export function lifecycleTermsOf({
  hvparams,
  tags,
}: Pick<InstanceRecord, 'hvparams' | 'tags'>): Pick<
  LifecycleTerms,
  'decommissionTimeoutS' | 'bootTimeoutS'
> {
  const maxS = Math.max(MAX_TIMEOUT_S, ...tags.map((tag) => MAX_TIMEOUTS_S.get(tag) ?? 0));
  return {
    decommissionTimeoutS: Math.min(hvparams.decommission_timeout ?? DECOMMISSION_TIMEOUT_S, maxS),
    bootTimeoutS: tags.includes('rs_launch:type=auto') ? BOOT_TIMEOUT_S : null,
  };
}

/** A guest with cloud-init starts its agent within this time, unless the host is overloaded. */
const SILENT_AFTER_MS = 300_000;

/** Adds the reason to the record of a booting guest whose agent has not reported. */
export function explainSilence(record: LifecycleRecord, nowMs: number): LifecycleRecord {
  const { state, progress, runStartedAtMs } = record;
  const isSilent = state === 'booting' && progress.boot === null && runStartedAtMs > 0;
  if (!isSilent || nowMs - runStartedAtMs < SILENT_AFTER_MS) return record;
  return { ...record, reason: SILENT_AGENT };
}
