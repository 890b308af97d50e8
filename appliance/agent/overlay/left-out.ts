import type { PaxRecords } from './pax.ts';

/** Namespaces of extended attributes that Linux allows for any name (xattr(7)). */
export const KEPT_NAMESPACES = ['user.', 'trusted.', 'security.'] as const;
const PREFIXES = ['SCHILY.xattr.', 'LIBARCHIVE.xattr.'];
/** NFSv4 ACLs of macOS and FreeBSD. */
const NFS4_ACL = 'SCHILY.acl.ace';
const MAX_NAMED = 10;
const MAX_NAME_LENGTH = 100;

/**
 * Returns the attributes of an entry that are not unpacked: those of other systems, such as
 * `com.apple.provenance`, and those in libarchive's own records only.
 */
export function listLeftOut(pax: PaxRecords): string[] {
  const names = new Set<string>();
  for (const key of pax.keys()) {
    if (key === NFS4_ACL) names.add('NFSv4 ACL');
    const prefix = PREFIXES.find((each) => key.startsWith(each));
    if (prefix === undefined) continue;
    const name = key.slice(prefix.length);
    const isKept = KEPT_NAMESPACES.some((each) => name.startsWith(each));
    if (!isKept || !pax.has(`SCHILY.xattr.${name}`)) names.add(name);
  }
  return [...names];
}

export class LeftOut {
  readonly #entries = new Map<string, number>();
  #others = 0;

  add(names: readonly string[]): void {
    for (const name of names) {
      const count = this.#entries.get(name);
      if (count === undefined && this.#entries.size >= MAX_NAMED) this.#others += 1;
      else this.#entries.set(name, (count ?? 0) + 1);
    }
  }

  /** @returns null when no attribute was skipped */
  describe(): string | null {
    if (this.#entries.size === 0) return null;
    const named = [...this.#entries].map(
      ([name, count]) => `${JSON.stringify(name.slice(0, MAX_NAME_LENGTH))} (${count})`,
    );
    const more = this.#others > 0 ? `, and ${this.#others} others` : '';
    return `skipped extended attributes of other systems: ${named.join(', ')}${more}`;
  }
}
