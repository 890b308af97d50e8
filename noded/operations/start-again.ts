import type { InstanceRecord } from '#shared/contract/instance.ts';
import { supplySecrets } from '#shared/contract/supply-secrets.ts';
import { AppError, isAppError, tellableMessage } from '#shared/errors/app-error.ts';
import type { JobSecrets } from '../instances/parameters/job-secrets.ts';
import { awaitedSecrets } from '../instances/machines/plan-starts.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Starts an instance that an operation had to stop. Ignores the operation's own signal, which may
 * have ended it. The guest gets the job's secrets, as far as the instance has their names.
 */
export async function startAgain(
  uuid: string,
  given: JobSecrets,
  { instances, runner }: Pick<OperationDependencies, 'instances' | 'runner'>,
  context: JobContext,
): Promise<void> {
  const { report } = context;
  const instance = await instances.update(uuid, (current) => ({
    ...current,
    adminState: 'up',
    stoppedByJob: null,
  }));
  if (runner.isRunning(uuid)) {
    report.log('the guest was told to power off, and may still do so', 'warn');
    return;
  }
  const { own, lost, isAwaited } = planSecrets(instance, given);
  if (isAwaited) {
    const command = supplySecrets(instance.name, lost);
    report.log(
      `'${instance.name}' is not started without its secrets. Supply them: ${command}`,
      'warn',
    );
    return;
  }
  const { signal } = new AbortController();
  await runner.start(instance, { ...given, osParameters: own }, { ...context, signal });
}

/** Returns the secrets of a guest that a job has, and the names of lost ones. Pure. */
export function planSecrets(
  instance: InstanceRecord,
  { osParameters }: Pick<JobSecrets, 'osParameters'>,
): {
  readonly own: JobSecrets['osParameters'];
  readonly lost: readonly string[];
  /** The instance does not start without the lost secrets. */
  readonly isAwaited: boolean;
} {
  const { secretNames } = instance;
  const isLost = (name: string): boolean => !osParameters.has(name);
  return {
    own: new Map([...osParameters].filter(([name]) => secretNames.includes(name))),
    lost: secretNames.filter(isLost),
    isAwaited: awaitedSecrets(instance).some(isLost),
  };
}

/**
 * Starts an instance as the last step of an operation. A failure says that the rest of the
 * operation is done.
 * @param done a clause that says so
 */
export async function startAfter(
  done: string,
  name: string,
  start: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await start();
  } catch (error) {
    const code = isAppError(error) ? error.code : 'INTERNAL';
    const why = signal.aborted ? 'was not started' : 'did not start';
    throw new AppError(code, `${done}, but '${name}' ${why}: ${tellableMessage(error)}`, {
      hint: `Start it: gnt-instance startup ${name}`,
      ...(isAppError(error) && { details: error.details }),
      cause: error,
    });
  }
}
