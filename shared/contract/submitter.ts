import { z } from 'zod';

/** Limits of the sums over all instances of a user. */
export const quota = z.strictObject({
  instances: z.number().int().nonnegative().optional(),
  memoryMiB: z.number().int().nonnegative().optional(),
  vcpus: z.number().int().nonnegative().optional(),
  diskBytes: z.number().int().nonnegative().optional(),
});
export type Quota = z.infer<typeof quota>;

/**
 * Instances that a user is bound to: those with one of the tags or a name that matches a pattern
 * (`*` is any text). It also limits the links of their NICs.
 */
export const scope = z.strictObject({
  tags: z.array(z.string().max(128)).max(100),
  names: z.array(z.string().max(255)).max(100),
  /** Patterns of bridges and cluster networks that their NICs may use. */
  links: z.array(z.string().max(255)).max(100).optional(),
  quota: quota.optional(),
});
export type Scope = z.infer<typeof scope>;

/** Submitter of a job other than root on the node's socket: a user of the remote API. */
export const submitter = z.strictObject({
  user: z.string().min(1).max(255),
  /** Null: every instance, and the cluster. */
  scope: scope.nullable(),
});
export type Submitter = z.infer<typeof submitter>;

interface Scoped {
  readonly name: string;
  readonly tags: readonly string[];
}

export function isWithin(bound: Scope | null, { name, tags }: Scoped): boolean {
  if (bound === null) return true;
  return tags.some((tag) => bound.tags.includes(tag)) || fitsName(bound, name);
}

export function fitsName({ names }: Scope, name: string): boolean {
  return names.some((pattern) => fits(pattern, name));
}

export function fitsLink({ links = [] }: Scope, name: string): boolean {
  return links.some((pattern) => fits(pattern, name));
}

/** Matches a pattern in time O(pattern × text), for any pattern. */
function fits(pattern: string, text: string): boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return text === pattern;
  if (!text.startsWith(head)) return false;
  let at = head.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - tail.length >= at && text.endsWith(tail);
}

/** Returns the name of the submitter for a job's record. */
export function nameSubmitter({ user }: Pick<Submitter, 'user'>): string {
  return `rapi:${user}`;
}
