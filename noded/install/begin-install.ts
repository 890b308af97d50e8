import type { InstallRecord, InstanceRecord } from '#shared/contract/instance.ts';

/**
 * What the store says of an installation from its very first moment: should this daemon be killed
 * before the first stage is told, `info` knows the job, and the next daemon that it failed. Pure.
 */
export function beginInstall(
  jobId: number,
  nowMs: number,
): Pick<InstanceRecord, 'installState'> & { readonly install: InstallRecord } {
  return {
    installState: 'installing',
    install: {
      jobId,
      state: 'installing',
      startedAtMs: nowMs,
      endedAtMs: null,
      stage: 'create-disks',
      error: null,
      stages: [],
      logFile: null,
    },
  };
}
