import type { z } from 'zod';

/** A field's name, or those of unknown fields, may be as long as what was sent. */
const MAX_MESSAGE_LENGTH = 500;

/** `field.path: what is wrong`, without the value that was given. */
export function describeIssue(error: z.ZodError): string {
  const issue = error.issues[0];
  if (!issue) return 'invalid';
  const path = issue.path.map(String).join('.');
  return `${path === '' ? '(top level)' : path}: ${issue.message}`.slice(0, MAX_MESSAGE_LENGTH);
}
