import { AppError } from '#shared/errors/app-error.ts';
import { findMissing, type HostCommands } from '#shared/process/host-commands.ts';

/** @throws AppError HOST_PREREQUISITE with the command that installs them */
export async function requireCommands(wanted: HostCommands): Promise<void> {
  const missing = await findMissing(wanted);
  if (missing === null) return;
  const what = `this host lacks ${missing.commands.join(', ')}, needed to build an appliance`;
  throw new AppError('HOST_PREREQUISITE', what, { hint: missing.remedy });
}
