import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { ScriptOutput } from '../instances/run-lists/lifecycles-contract.ts';
import { refuseImpossible } from '../instances/run-lists/plan-lists.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Runs a script of the operational list on demand. Scripts have a lock of their own and run one at
 * a time, in order. Stopping the instance overtakes waiting scripts and ends the running one.
 */
export function runScriptHandler({
  instances,
  lifecycles,
  runner,
}: OperationDependencies): JobHandler<OpcodeOf<'INSTANCE_RUN_SCRIPT'>> {
  return {
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      if (runner.running(instance.uuid) === undefined) {
        throw new AppError('INSTANCE_STATE', `instance '${instance.name}' is not running`, {
          hint: `gnt-instance startup ${instance.name}`,
        });
      }
      const scripts = await lifecycles.listScripts(asItRuns(instance));
      const { name: script, inputs } = findScript(instance, opcode.script, scripts);
      for (const input of inputs ?? []) {
        const text = ownValue(opcode.inputs, input.name);
        if (text !== undefined)
          refuseImpossible({ name: script }, input, { from: 'text', text }, new Map());
      }
      const env = Object.fromEntries(
        Object.entries(opcode.inputs).map(([name, text]) => [name, { text }]),
      );
      return async (context) => {
        const { signal, report } = context;
        const onOutput = ({ text, lostBytes }: ScriptOutput): void => {
          if (lostBytes > 0) report.log(`${lostBytes} bytes of output were dropped`, 'warn');
          if (text !== '') report.scriptOutput(text);
        };
        const status = await lifecycles.run(instance, { script, env, onOutput }, signal);
        if (status === 0) return { name: instance.name, script, exitStatus: 0 };
        throw new AppError('SCRIPT_FAILED', `script '${script}' ended with exit status ${status}`, {
          details: { script, exitStatus: status },
          hint: `Show its output: gnt-instance audit ${instance.name}`,
        });
      };
    },
  };
}

/**
 * Finds a script by its name in the list, with or without the number.
 * @throws AppError NOT_FOUND, also if the name without a number matches several scripts
 */
export function findScript<T extends { readonly name: string }>(
  instance: { readonly name: string },
  wanted: string,
  scripts: readonly T[],
): T {
  const exact = scripts.find(({ name }) => name === wanted);
  if (exact !== undefined) return exact;
  const [found, ...others] = scripts.filter(({ name }) => name.replace(/^\d+-/, '') === wanted);
  if (found !== undefined && others.length === 0) return found;
  const candidates = (found === undefined ? scripts : [found, ...others]).map(({ name }) => name);
  const how = found === undefined ? 'has no script' : 'has several scripts';
  throw new AppError('NOT_FOUND', `the operational list of '${instance.name}' ${how} '${wanted}'`, {
    details: { scripts: candidates },
    hint: hintOf(instance.name, candidates, found !== undefined),
  });
}

function hintOf(name: string, candidates: readonly string[], isAmbiguous: boolean): string {
  const [first] = candidates;
  if (first === undefined) return `Add it: gnt-instance modify --operational-script FILE ${name}`;
  return isAmbiguous
    ? `Name one by its number: ${candidates.join(', ')}`
    : `It has: ${candidates.join(', ')}`;
}
