import { z } from 'zod';

/** `ssh-keygen` makes no longer keys. */
const MAX_HOST_KEY_LENGTH = 2048;
/** A guest has one key of each type. */
export const MAX_HOST_KEYS = 8;
const TYPES = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'ssh-rsa',
] as const;

/**
 * A public host key as in known_hosts: type and base64 data of the same type. The check is strict,
 * because ssh reads the file with these lines.
 */
export const hostKey = z
  .string()
  .max(MAX_HOST_KEY_LENGTH)
  .refine(isHostKey, 'expected the type and the base64 data of a public key');
export const hostKeys = z.array(hostKey).max(MAX_HOST_KEYS);

function isHostKey(text: string): boolean {
  const [type = '', blob = '', ...rest] = text.split(' ');
  if (rest.length > 0 || !TYPES.some((known) => known === type)) return false;
  const bytes = Buffer.from(blob, 'base64');
  if (bytes.toString('base64') !== blob || bytes.length < 4) return false;
  const named = bytes.subarray(4, 4 + bytes.readUInt32BE(0)).toString('latin1');
  return named === type;
}

/** The guest's user with the operator's keys. It becomes an argument of ssh. */
export const loginUser = z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/);

/** The trusted keys of one installation. */
export const knownHostKeys = z.object({ instanceId: z.string(), keys: hostKeys });

/** How to reach a guest by ssh, and its known host keys. */
export const sshInfo = z.object({
  /** As the guest reported; null: not reported. */
  user: loginUser.nullable(),
  /** Trusted keys: reported first by the installation, or accepted by an operator since. */
  hostKeys,
  /** Keys that the guest of the present run reported; empty: none. */
  saidHostKeys: hostKeys,
});
export type SshInfo = z.infer<typeof sshInfo>;
