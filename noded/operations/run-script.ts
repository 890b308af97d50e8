import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * A script of the operational list, on demand. One at a time and in their order, by a lock of their
 * own: whoever stops the instance passes those that wait, and ends the one that runs.
 */
export function runScriptHandler({
  instances,
  lifecycles,
  runner,
}: OperationDependencies): JobHandler<OpcodeOf<'INSTANCE_RUN_SCRIPT'>> {
  return {
    locks: (opcode) => [`script/${opcode.name}`],
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      if (runner.running(instance.uuid) === undefined) {
        throw new AppError('INSTANCE_STATE', `instance '${instance.name}' is not running`, {
          hint: `gnt-instance startup ${instance.name}`,
        });
      }
      const script = findScript(
        instance,
        opcode.script,
        await lifecycles.listScripts(asItRuns(instance)),
      );
      const env = Object.fromEntries(
        Object.entries(opcode.inputs).map(([name, text]) => [name, { text }]),
      );
      return async (context) => {
        const status = await lifecycles.run(instance, { script, env }, context.signal);
        if (status === 0) return { name: instance.name, script, exitStatus: 0 };
        throw new AppError('SCRIPT_FAILED', `script '${script}' ended with exit status ${status}`, {
          details: { script, exitStatus: status },
          hint: `Show its output: gnt-instance audit ${instance.name}`,
        });
      };
    },
  };
}

/** Finds a script by its name in the list, with or without the number. */
function findScript({ name }: InstanceRecord, wanted: string, scripts: readonly string[]): string {
  const found = scripts.find(
    (script) => script === wanted || script.replace(/^\d+-/, '') === wanted,
  );
  if (found !== undefined) return found;
  throw new AppError('NOT_FOUND', `the operational list of '${name}' has no script '${wanted}'`, {
    details: { scripts },
    hint:
      scripts.length === 0
        ? `Add it: gnt-instance modify --operational-script FILE ${name}`
        : `It has: ${scripts.join(', ')}`,
  });
}
