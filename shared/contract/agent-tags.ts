/**
 * The settings from an instance's `rs_agent:` tags, which RightLink defined. With
 * `rs_agent:type=right_link_lite`, the user data becomes a multi-part document: an identity and an
 * agent precede the user's own part. The other tags have no effect without that one.
 */
export interface AgentTags {
  /** `rs_agent:mime_identity`: how the identity is written. */
  readonly identity: (typeof IDENTITIES)[number];
  /** `rs_agent:mime_shellscript`: a script downloads and runs this installer instead of ours. */
  readonly shellscriptUrl: string | null;
  /** `rs_agent:mime_include_url`: cloud-init includes this installer instead of ours. */
  readonly includeUrl: string | null;
}

export const AGENT_TAG_PREFIX = 'rs_agent:';
export const AGENT_TYPE_TAG = `${AGENT_TAG_PREFIX}type=right_link_lite`;
const IDENTITIES = ['shellscript', 'write_file'] as const;
/** Printable ASCII, because the URL becomes a line of a document and a word of a script. */
const URL_PATTERN = /^https?:\/\/[!-~]+$/;
const NAMES = ['mime_identity', 'mime_shellscript', 'mime_include_url'] as const;
type Name = (typeof NAMES)[number];

/**
 * Returns the settings, or null if user data is served unchanged. Ignores the tags that
 * `wrongAgentTag` reports. Pure.
 */
export function parseAgentTags(tags: readonly string[]): AgentTags | null {
  if (!tags.includes(AGENT_TYPE_TAG)) return null;
  const value = (name: Name): string | null =>
    valuesOf(tags, name).find((found) => isPossible(name, found)) ?? null;
  return {
    identity: IDENTITIES.find((identity) => identity === value('mime_identity')) ?? 'shellscript',
    shellscriptUrl: value('mime_shellscript'),
    includeUrl: value('mime_include_url'),
  };
}

/** Returns why a tag is invalid, with its name, or null if all are valid. Pure. */
export function wrongAgentTag(tags: readonly string[]): string | null {
  for (const name of NAMES) {
    const values = valuesOf(tags, name);
    if (values.length > 1) return `the tag rs_agent:${name} occurs ${values.length} times`;
    const wrong = values.find((value) => !isPossible(name, value));
    if (wrong === undefined) continue;
    const possible = name === 'mime_identity' ? IDENTITIES.join(' or ') : 'an http or https URL';
    return `the tag rs_agent:${name}=${wrong} has an invalid value: expected ${possible}`;
  }
  return null;
}

function valuesOf(tags: readonly string[], name: Name): readonly string[] {
  const start = `${AGENT_TAG_PREFIX}${name}=`;
  return tags.filter((tag) => tag.startsWith(start)).map((tag) => tag.slice(start.length));
}

function isPossible(name: Name, value: string): boolean {
  if (name === 'mime_identity') return IDENTITIES.some((identity) => identity === value);
  return URL_PATTERN.test(value) && URL.canParse(value);
}
