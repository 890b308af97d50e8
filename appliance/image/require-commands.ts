import { AppError } from '#shared/errors/app-error.ts';
import { findMissing, type HostCommands } from '#shared/process/host-commands.ts';

/** @throws AppError HOST_PREREQUISITE with the command that brings them */
export async function requireCommands(wanted: HostCommands): Promise<void> {
  const missing = await findMissing(wanted);
  if (missing === null) return;
  const what = `this host has no ${missing.commands.join(', ')}, which an appliance is built with`;
  throw new AppError('HOST_PREREQUISITE', what, { hint: missing.remedy });
}
