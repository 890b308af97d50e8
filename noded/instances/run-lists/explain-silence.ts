import { type LifecycleRecord, SILENT_AGENT } from '#shared/contract/lifecycle.ts';

/** A guest with cloud-init starts its agent within this time, unless the host is overloaded. */
const SILENT_AFTER_MS = 300_000;

/** Adds the reason to the record of a booting guest whose agent has not reported. */
export function explainSilence(record: LifecycleRecord, nowMs: number): LifecycleRecord {
  const { state, progress, runStartedAtMs } = record;
  const isSilent = state === 'booting' && progress.boot === null && runStartedAtMs > 0;
  if (!isSilent || nowMs - runStartedAtMs < SILENT_AFTER_MS) return record;
  return { ...record, reason: SILENT_AGENT };
}
