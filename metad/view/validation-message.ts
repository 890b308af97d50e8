import type { z } from 'zod';

/** `field.path: what is wrong`, without the value that was given. */
export function describeIssue(error: z.ZodError): string {
  const issue = error.issues[0];
  if (!issue) return 'invalid';
  const path = issue.path.map(String).join('.');
  return `${path === '' ? '(top level)' : path}: ${issue.message}`;
}
