import { errorCodes, isErrorCode, type ErrorCode } from '#shared/errors/codes.ts';

/**
 * Returns the error code that an appliance reported. It runs hostile scripts, so unknown codes and
 * codes about the job become INTERNAL.
 */
export function agentCode(code: string): ErrorCode {
  const isAgents = isErrorCode(code) && errorCodes[code] === 1 && !code.startsWith('JOB_');
  return isAgents ? code : 'INTERNAL';
}
