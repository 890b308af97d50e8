/** Domains that no server of anyone has: RFC 2606. Names in documents and tests are theirs. */
const RESERVED = ['test', 'example', 'example.com', 'example.net', 'example.org'] as const;
const TAG = 'domain:';

/** Returns the domains of a network, which its operator names by tags: `domain:guests.acme.com`. */
export function ownDomainsOf(tags: readonly string[]): readonly string[] {
  return tags
    .filter((tag) => tag.startsWith(TAG))
    .map((tag) => tag.slice(TAG.length).toLowerCase());
}

/**
 * Whether a guest may be found by a full name. A guest with a name of another domain would take the
 * traffic of that server from its neighbours. Pure.
 */
export function isInDomains(name: string, domains: readonly string[]): boolean {
  return [...RESERVED, ...domains].some(
    (domain) => domain !== '' && name.length > domain.length + 1 && name.endsWith(`.${domain}`),
  );
}
