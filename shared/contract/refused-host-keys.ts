import type { SshInfo } from './host-keys.ts';

/** What a guest says that is not trusted until an operator accepts it. */
export function refusedHostKeys({ hostKeys: trusted, saidHostKeys }: SshInfo): string[] {
  return saidHostKeys.filter((key) => !trusted.includes(key));
}
