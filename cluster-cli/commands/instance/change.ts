import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { withoutUnset } from '../../values/os-parameters.ts';
import { parseSizeBytes } from '../../values/size.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import type { SubmitOptions } from '../submit.ts';
import { readOsParameters } from './parse-options.ts';
import { submitChange, wholeName } from './submit-change.ts';
import { refuseWaitWithout, type WaitReadyOptions } from './wait-ready.ts';

export async function runRemove(
  context: Context,
  typed: string,
  options: ForceOptions & { readonly shutdownTimeout?: number },
): Promise<void> {
  const name = await wholeName(context, typed, options);
  await confirmLoss(context, `This removes ${name}, its disks and all data on them.`, options);
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_REMOVE',
    name,
    shutdownTimeoutS: options.shutdownTimeout,
  };
  await submitChange(context, opcode, options, `instance ${name} removed`);
}

export async function runAdopt(
  context: Context,
  name: string,
  options: SubmitOptions,
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'INSTANCE_ADOPT', name };
  await submitChange(context, opcode, options, `instance ${name} adopted`);
}

export async function runRename(
  context: Context,
  name: string,
  newName: string,
  options: SubmitOptions & { readonly installTimeout?: number },
): Promise<void> {
  const { installTimeout: installTimeoutS } = options;
  const opcode: OpcodeInput = { opcode: 'INSTANCE_RENAME', name, newName, installTimeoutS };
  await submitChange(context, opcode, options, `instance ${name} renamed to ${newName}`);
}

export async function runCopyInstance(
  context: Context,
  name: string,
  newName: string,
  options: SubmitOptions,
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'INSTANCE_COPY', name, newName };
  await submitChange(context, opcode, options, `instance ${name} copied to ${newName}`);
}

/** Runs `gnt-instance add-tags` and `remove-tags`. */
export async function runTags(
  context: Context,
  name: string,
  tags: { readonly addTags: readonly string[] } | { readonly removeTags: readonly string[] },
  options: SubmitOptions,
): Promise<void> {
  const lists = Object.entries(tags).map(([key, list]) => [key, [...list]] as const);
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_SET_PARAMS', name },
    ...Object.fromEntries(lists),
  };
  await submitChange(context, opcode, options, `tags of ${name} changed`);
}

export async function runScript(
  context: Context,
  name: string,
  script: string,
  options: SubmitOptions & { readonly input?: readonly string[] },
): Promise<void> {
  const inputs = Object.fromEntries(
    (options.input ?? []).map((given) => {
      const [, key, value] = /^([^=]+)=([\s\S]*)$/.exec(given) ?? [];
      if (key !== undefined && value !== undefined)
        return [key, context.values.resolve('--input', value)];
      // The text may be a secret, so the error omits it.
      throw new AppError('USAGE', 'option --input: expected NAME=VALUE', {
        hint: 'Write --input NAME=VALUE, or --input NAME=@FILE to read the value from a file',
      });
    }),
  );
  const opcode: OpcodeInput = { opcode: 'INSTANCE_RUN_SCRIPT', name, script, inputs };
  await submitChange(context, opcode, options, `script ${script} of ${name} finished`);
}

export async function runGrowDisk(
  context: Context,
  name: string,
  { disk, amount }: { readonly disk: string; readonly amount: string },
  options: SubmitOptions & { readonly absolute?: boolean },
): Promise<void> {
  if (!/^\d{1,2}$/.test(disk)) {
    throw new AppError('USAGE', `'${disk}' is not a number of a disk`, {
      hint: `Disks are numbered from 0: gnt-instance info ${name}`,
    });
  }
  const amountBytes = parseSizeBytes('AMOUNT', amount);
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_GROW_DISK', name, disk: Number(disk), amountBytes },
    absolute: options.absolute,
  };
  await submitChange(context, opcode, options, `disk ${disk} of ${name} grown`);
}

export async function runStartup(
  context: Context,
  name: string,
  options: SubmitOptions & WaitReadyOptions & { readonly osParametersSecret?: readonly string[] },
): Promise<void> {
  refuseWaitWithout(options);
  const { osParametersSecret } = options;
  const { secret } = readOsParameters(context, osParametersSecret ? { osParametersSecret } : {});
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_STARTUP',
    name,
    osParametersSecret: withoutUnset(secret),
  };
  await submitChange(context, opcode, options, `instance ${name} started`);
}

export async function runShutdown(
  context: Context,
  name: string,
  options: SubmitOptions & { readonly timeout?: number },
): Promise<void> {
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_SHUTDOWN',
    name,
    timeoutS: options.timeout,
  };
  await submitChange(context, opcode, options, `instance ${name} shut down`);
}

export async function runReboot(
  context: Context,
  name: string,
  options: SubmitOptions &
    WaitReadyOptions & {
      readonly type?: 'soft' | 'hard' | 'full';
      readonly shutdownTimeout?: number;
    },
): Promise<void> {
  refuseWaitWithout(options);
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_REBOOT',
    name,
    kind: options.type,
    timeoutS: options.shutdownTimeout,
  };
  await submitChange(context, opcode, options, `instance ${name} rebooted`);
}
