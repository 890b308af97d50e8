/** Reserved domains (RFC 2606), which have no servers. Documents and tests use them. */
const RESERVED = ['test', 'example', 'example.com', 'example.net', 'example.org'] as const;
const TAG = 'domain:';

/** Returns the domains of a network, which its operator names by tags: `domain:guests.acme.com`. */
export function ownDomainsOf(tags: readonly string[]): readonly string[] {
  return tags
    .filter((tag) => tag.startsWith(TAG))
    .map((tag) => tag.slice(TAG.length).toLowerCase());
}

/**
 * Returns whether guests may resolve this full name. A guest with a name of another domain would
 * receive its neighbours' traffic to that server.
 */
export function isInDomains(name: string, domains: readonly string[]): boolean {
  return [...RESERVED, ...domains].some(
    (domain) => domain !== '' && name.length > domain.length + 1 && name.endsWith(`.${domain}`),
  );
}
