import type { InstanceRecord } from '#shared/contract/instance.ts';
import { installTimeoutOf } from '#shared/contract/install-timeout.ts';
import { tellableMessage } from '#shared/errors/app-error.ts';
import { chooseHelper } from '../provision/os/choose-scripts.ts';
import { explainMistrust } from '../provision/os/os-trust.ts';
import { loadAppliance } from '../instances/record/choose-appliance.ts';
import { loadParameters } from '../instances/parameters/load-parameters.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import { StageFailure } from '../jobs/stage-failure.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { selectOs } from './os-policy.ts';
import { formatOutput } from './check-parameters-by-os.ts';

/**
 * Tells an installed system its new name through the definition's `rename`. As in Ganeti, the
 * instance is already renamed: a failing script causes only a warning.
 */
export async function runRenameScript(
  renamed: InstanceRecord,
  {
    oldName,
    installTimeoutS,
  }: { readonly oldName: string; readonly installTimeoutS?: number | undefined },
  dependencies: OperationDependencies,
  context: JobContext,
): Promise<void> {
  const { clusters, installer } = dependencies;
  if (renamed.osType === null || renamed.installState !== 'installed') return;
  try {
    // The system is installed with its variant, even if the definition no longer lists it.
    const { os, policy } = await selectOs(renamed.osType, dependencies, { forceVariant: true });
    const script = chooseHelper(os.definition, 'rename', policy);
    if (script === undefined) {
      const { trust } = policy;
      const isLost = trust.state === 'changed' || trust.state === 'by-name';
      const why = isLost ? `, ${explainMistrust(trust)}` : '';
      context.report.log(
        `the guest keeps its host name: OS '${renamed.osType}' has no rename script that may run${why}`,
      );
      return;
    }
    const { name: appliance } = await loadAppliance(renamed, clusters);
    using held = new DisposableStack();
    if ('appliance' in script)
      held.use(await installer.enterRoom(renamed, { isFromMedium: false, appliance }, context));
    const request = {
      instance: renamed,
      os,
      ...{ script, appliance },
      operation: { script: 'rename', oldName } as const,
      parameters: await loadParameters(renamed, clusters),
      dumps: [],
      timeoutS: installTimeoutOf({ installTimeoutS }, renamed, await clusters.load()),
    };
    await installer.runScript(request, context);
  } catch (error) {
    if (context.signal.aborted) throw error;
    const output = error instanceof StageFailure ? error.logTail : [];
    context.report.log(
      `Could not run OS rename script for instance ${renamed.name} (but the instance has been renamed): ${tellableMessage(error)}${formatOutput(output)}`,
      'warn',
    );
  }
}
