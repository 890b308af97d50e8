import type { Opcode } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { describeError } from '#shared/log/describe-error.ts';
import type { LogFields, Logger } from '#shared/log/log.ts';
import { createWithholdingMask, WITHHELD } from '#shared/secret/withhold.ts';
import { UNEXPECTED } from './describe-failure.ts';
import { listOpcodeValues } from './opcode-values.ts';

export interface LogUnexpectedDependencies {
  /** Returns private and secret values that an operation uses besides those of its opcode. */
  readonly listHiddenValues: (opcode: Opcode) => Promise<readonly string[]>;
  readonly logger: Logger;
}

/** Logs a failure that is a bug, without private and secret values. Ignores other failures. */
export type LogUnexpected = (error: unknown, opcode: Opcode, fields: LogFields) => Promise<void>;

export function createLogUnexpected({
  listHiddenValues,
  logger,
}: LogUnexpectedDependencies): LogUnexpected {
  return async (error, opcode, fields) => {
    if (isAppError(error) && error.code !== 'INTERNAL') return;
    const mask = await listHiddenValues(opcode).then(
      (values) => createWithholdingMask([...values, ...listOpcodeValues(opcode)]),
      () => () => WITHHELD,
    );
    logger.error(UNEXPECTED, { ...fields, err: describeError(error, mask) });
  };
}
