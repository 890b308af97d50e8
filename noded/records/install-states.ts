import type { InstallRecord, InstanceRecord } from '#shared/contract/instance.ts';

/**
 * Returns the state of an installation at its start. If the daemon is killed before the first
 * stage, `info` still shows the job, and the next daemon marks it as failed. Pure.
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
 * Returns an instance at the start of its reinstallation. The former state is kept, and restored
 * unless the reinstallation succeeds or has to overwrite its disks. Pure.
 */
export function beginReinstall(
  instance: InstanceRecord,
  jobId: number,
  nowMs: number,
): InstanceRecord {
  const { adminState, install } = instance;
  // The end of an earlier installation could not be stored.
  const installState = instance.installState === 'installing' ? 'failed' : instance.installState;
  return {
    ...instance,
    ...beginInstall(jobId, nowMs),
    beforeReinstall: instance.beforeReinstall ?? { adminState, installState, install },
  };
}

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
 * Returns an instance before its disks are removed. If the removal is interrupted, the instance
 * cannot be started and shows why. It can be removed again or reinstalled. Pure.
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

export const FAILED = { installState: 'failed', adminState: 'down', stoppedByJob: null } as const;

/**
 * Returns an instance after a failed installation: in its former state if its disks are intact,
 * else not startable. Pure.
 * @param install its stages and error
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
