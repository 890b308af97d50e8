import type { InstallStage } from '#shared/contract/primitives.ts';
import { AppError, type AppErrorOptions } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';

export class StageFailure extends AppError {
  readonly stage: InstallStage;
  /** Last lines of the log, masked like the log. */
  readonly logTail: readonly string[];

  constructor(
    code: ErrorCode,
    message: string,
    options: AppErrorOptions & {
      readonly stage: InstallStage;
      readonly logTail: readonly string[];
    },
  ) {
    super(code, message, options);
    this.stage = options.stage;
    this.logTail = options.logTail;
  }
}
