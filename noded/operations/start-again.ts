import type { InstanceRecord } from '#shared/contract/instance.ts';
import { noSecrets } from '../instances/job-secrets.ts';
import type { InstanceRunner } from '../instances/instance-runner.ts';
import type { JobContext } from '../jobs/job-handler.ts';

/** Starts an instance that an operation had to stop. */
export async function startAgain(
  instance: InstanceRecord,
  runner: Pick<InstanceRunner, 'start'>,
  context: JobContext,
): Promise<void> {
  if (instance.secretNames.length > 0) {
    context.report.log(
      `its channel has no secrets any more: ${instance.secretNames.join(', ')}; gnt-instance modify --os-parameters-secret gives them again`,
      'warn',
    );
  }
  await runner.start(instance, noSecrets, context);
}
