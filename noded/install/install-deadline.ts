import { type Deadline, startDeadline } from '#shared/abort/deadline.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * @param what is limited, as it stands in a sentence
 * @param timeoutS seconds, 0 for none
 */
export function startInstallDeadline(
  signal: AbortSignal,
  what: string,
  timeoutS: number,
): Deadline {
  const reason = (): AppError =>
    new AppError('INSTALL_TIMEOUT', `${what} did not end within ${timeoutS} s`, {
      hint: '--install-timeout SECONDS allows more (0 = no limit): of this command, of gnt-instance modify for the instance, of gnt-cluster modify for all',
    });
  return startDeadline(signal, timeoutS === 0 ? null : timeoutS * 1000, reason);
}
