import type { z } from 'zod';

/** Names of fields, also of unknown ones, are as long as the input. */
const MAX_MESSAGE_LENGTH = 500;

/** Returns `field.path: problem` without the value of the field. */
export function describeIssue(error: z.ZodError): string {
  const issue = error.issues[0];
  if (!issue) return 'invalid';
  const path = issue.path.map(String).join('.');
  return `${path === '' ? '(top level)' : path}: ${issue.message}`.slice(0, MAX_MESSAGE_LENGTH);
}
