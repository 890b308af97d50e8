import { hostKey, loginUser, MAX_HOST_KEYS } from '#shared/contract/host-keys.ts';

/** Limit of pairs in a form. phone_home posts about ten. */
const MAX_PAIRS = 64;

/**
 * Reads the SSH host keys that phone_home posts (`pub_key_ed25519=ssh-ed25519+AAAA…`), and
 * `login_user` of our own script. Other values are ignored: cloud-init writes `N/A` for missing
 * keys.
 * @returns null without any key
 */
export function readHostKeys(body: Buffer): { keys: string[]; user: string | null } | null {
  const form = new URLSearchParams(body.toString('utf8').split('&', MAX_PAIRS).join('&'));
  const keys = new Set<string>();
  for (const [name, value] of form) {
    // A comment after the key is the guest's own.
    const key = value.trim().split(/\s+/, 2).join(' ');
    if (!name.startsWith('pub_key_') || !hostKey.safeParse(key).success) continue;
    if (keys.size < MAX_HOST_KEYS) keys.add(key);
  }
  const user = loginUser.safeParse(form.get('login_user'));
  return keys.size === 0 ? null : { keys: [...keys].sort(), user: user.data ?? null };
}
