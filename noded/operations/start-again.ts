import type { InstanceRecord } from '#shared/contract/instance.ts';
import { supplySecrets } from '#shared/contract/supply-secrets.ts';
import { AppError, isAppError, tellableMessage } from '#shared/errors/app-error.ts';
import type { JobSecrets } from '../instances/parameters/job-secrets.ts';
import { awaitedSecrets } from '../instances/machines/plan-starts.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Starts an instance that an operation had to stop, whatever ended the operation: its own signal
 * may be what did. The guest gets the secrets that the job was given, as far as they are its.
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

/** What a job has of the secrets that a guest had, and what is lost. Pure. */
export function planSecrets(
  instance: InstanceRecord,
  { osParameters }: Pick<JobSecrets, 'osParameters'>,
): {
  readonly own: JobSecrets['osParameters'];
  readonly lost: readonly string[];
  /** The instance is not started without the secrets that are lost. */
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
 * The last step of an operation that has succeeded but for it: whoever reads the failure learns
 * what was done.
 * @param done a clause that says it
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
