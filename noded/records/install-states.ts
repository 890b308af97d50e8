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

/**
 * The same for an instance that there is: what it was is remembered, and is true again unless the
 * reinstallation succeeds or has to overwrite its disks. Pure.
 */
export function beginReinstall(
  instance: InstanceRecord,
  jobId: number,
  nowMs: number,
): InstanceRecord {
  const { adminState, install } = instance;
  // One whose end could not be recorded.
  const installState = instance.installState === 'installing' ? 'failed' : instance.installState;
  return {
    ...instance,
    ...beginInstall(jobId, nowMs),
    beforeReinstall: instance.beforeReinstall ?? { adminState, installState, install },
  };
}

/** The record of an installation that nobody carries out any more. Pure. */
export function interruptInstall(
  instance: InstanceRecord,
  message: string,
  nowMs: number,
): InstanceRecord {
  const hint = `gnt-instance reinstall ${instance.name}`;
  return failInstall(
    instance,
    instance.install && {
      ...instance.install,
      state: 'failed',
      endedAtMs: nowMs,
      error: { code: 'JOB_INTERRUPTED', message, hint },
    },
  );
}

/**
 * An instance whose disks are about to go: should its removal be interrupted, it is nothing that is
 * started, and says why. It can be removed again, or installed anew. Pure.
 */
export function beginRemoval(
  instance: InstanceRecord,
  jobId: number,
  nowMs: number,
): InstanceRecord {
  if (instance.installState === 'failed') return instance;
  const begun = { ...beginInstall(jobId, nowMs).install, ...instance.install };
  const install: InstallRecord = {
    ...begun,
    ...{ jobId, state: 'failed', endedAtMs: nowMs },
    error: {
      code: 'JOB_INTERRUPTED',
      message: 'its removal has begun: its disks may be gone',
      hint: `gnt-instance remove ${instance.name}`,
    },
  };
  return failInstall({ ...instance, beforeReinstall: null }, install);
}

/** The state of an instance that cannot be started. */
export const FAILED = { installState: 'failed', adminState: 'down', stoppedByJob: null } as const;

/**
 * An installation that came to nothing: the instance is what it was, or it is nothing that can be
 * started. Pure.
 * @param install how it went
 */
export function failInstall(
  instance: InstanceRecord,
  install: InstallRecord | null,
): InstanceRecord {
  const { beforeReinstall } = instance;
  const failed = { ...FAILED, install };
  const isWhole = beforeReinstall !== null && beforeReinstall.installState !== 'failed';
  return { ...instance, ...(isWhole ? beforeReinstall : failed), beforeReinstall: null };
}
