import { type Deadline, startDeadline } from '#shared/abort/deadline.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * @param what subject of the error message
 * @param timeoutS seconds, 0 for no limit
 */
export function startInstallDeadline(
  signal: AbortSignal,
  what: string,
  timeoutS: number,
): Deadline {
  const reason = (): AppError =>
    new AppError('INSTALL_TIMEOUT', `${what} did not end within ${timeoutS} s`, {
      hint: 'Allow more time with --install-timeout SECONDS (0 = no limit): on this command, with gnt-instance modify for the instance, or with gnt-cluster modify for all',
    });
  return startDeadline(signal, timeoutS === 0 ? null : timeoutS * 1000, reason);
}
