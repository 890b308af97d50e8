import { errorCodes, isErrorCode, type ErrorCode } from '#shared/errors/codes.ts';

/**
 * What a machine that runs hostile scripts may call its failure: a code that we do not know, or
 * that says something of the job, is not passed on.
 */
export function agentCode(code: string): ErrorCode {
  const isAgents = isErrorCode(code) && errorCodes[code] === 1 && !code.startsWith('JOB_');
  return isAgents ? code : 'INTERNAL';
}
