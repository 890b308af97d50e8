import type { OpcodeInput } from '#shared/contract/opcode.ts';
import type { Context } from '../../terminal/context.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { composeInstallation, type InstallationOptions } from './add.ts';
import { submitChange, wholeName } from './submit-change.ts';
import { refuseWaitWithout, type WaitReadyOptions } from './wait-ready.ts';

export interface ReinstallOptions extends InstallationOptions, ForceOptions, WaitReadyOptions {
  readonly keepOld?: boolean;
  readonly shutdownTimeout?: number;
}

export async function runReinstall(
  context: Context,
  typed: string,
  options: ReinstallOptions,
): Promise<void> {
  refuseWaitWithout(options, { '--no-start': options.start === false });
  const { keepOld, shutdownTimeout: shutdownTimeoutS } = options;
  const installation = await composeInstallation(context, options);
  const name = await wholeName(context, typed, options);
  // Scripts need no confirmation, for compatibility: an installation can be repeated.
  if (context.terminal.stdin.isTTY)
    await confirmLoss(context, `This removes all data on the disks of ${name}.`, options);
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_REINSTALL',
    name,
    ...installation,
    ...{ keepOld, shutdownTimeoutS },
  };
  await submitChange(context, opcode, options, `instance ${name} reinstalled`);
}
