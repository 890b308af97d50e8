import type { InstanceInfo } from '#shared/contract/instance.ts';

/** Returns the trusted keys of an instance as lines of a known_hosts file; empty without keys. */
export function formatKnownHosts({ name, ssh }: Pick<InstanceInfo, 'name' | 'ssh'>): string {
  return ssh.hostKeys.map((key) => `${name} ${key}\n`).join('');
}

/** Formats a key as `ssh-keygen -l` does: `ssh-ed25519 SHA256:…`. */
export function formatFingerprint(key: string): string {
  const [type = '', blob = ''] = key.split(' ');
  // Loaded on demand: the module takes longer to load than most commands run.
  const { createHash } = process.getBuiltinModule('node:crypto');
  const digest = createHash('sha256').update(Buffer.from(blob, 'base64')).digest('base64');
  return `${type} SHA256:${digest.replaceAll('=', '')}`;
}
