import { z } from 'zod';

/** What of a key is looked at: larger ones no `ssh-keygen` makes. */
const MAX_HOST_KEY_LENGTH = 2048;
/** A guest has one of each type. */
export const MAX_HOST_KEYS = 8;
const TYPES = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'ssh-rsa',
] as const;

/**
 * A public key of a guest's sshd as a line of known_hosts has it: type and base64, which names the
 * same type. Nothing else fits, as these lines go into a file that ssh reads.
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

/** The user of a guest that holds the operator's keys; goes to ssh as an argument. */
export const loginUser = z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/);

/** The keys that are trusted, of one installation. */
export const knownHostKeys = z.object({ instanceId: z.string(), keys: hostKeys });

/** How to reach a guest by ssh, and what is known of whom one reaches. */
export const sshInfo = z.object({
  /** As the guest said; null: it did not. */
  user: loginUser.nullable(),
  /** Trusted: those that its installation said first, or that an operator accepted since. */
  hostKeys,
  /** What the guest of the present run says that its keys are; empty: nothing. */
  saidHostKeys: hostKeys,
});
export type SshInfo = z.infer<typeof sshInfo>;
