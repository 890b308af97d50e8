import type { SshInfo } from './host-keys.ts';

/** Returns the reported host keys that an operator has not accepted yet. */
export function refusedHostKeys({ hostKeys: trusted, saidHostKeys }: SshInfo): string[] {
  return saidHostKeys.filter((key) => !trusted.includes(key));
}
