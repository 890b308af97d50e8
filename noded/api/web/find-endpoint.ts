import { listEndpoints, type ListedEndpoint } from '#shared/contract/endpoints.ts';

export interface FoundEndpoint {
  readonly endpoint: ListedEndpoint;
  /** The decoded `{name}` of the path. */
  readonly name: string | undefined;
}

const patterns = listEndpoints().map((endpoint) => ({
  endpoint,
  pattern: patternOf(endpoint.path),
}));

/**
 * Finds the endpoint of a request before its handler is called. It accepts fewer spellings of a
 * path than the router, so the handler of another endpoint is never reached.
 */
export function findEndpoint(method: string, path: string): FoundEndpoint | undefined {
  const asked = method === 'HEAD' ? 'GET' : method;
  for (const { endpoint, pattern } of patterns) {
    const match = endpoint.method === asked ? pattern.exec(path) : null;
    if (match === null) continue;
    const name = match.groups?.['name'];
    const decoded = name === undefined ? undefined : decode(name);
    return name !== undefined && decoded === undefined ? undefined : { endpoint, name: decoded };
  }
  return undefined;
}

function patternOf(path: string): RegExp {
  const parts = path.split('/').slice(1);
  const patterns = parts.map((part) => {
    // After a `#`, the router reads `\` as `/`.
    if (part.startsWith('{*')) return '(?:/[^#\\\\\\s]*)?';
    if (!part.startsWith('{')) return `/${RegExp.escape(part)}`;
    return `/(?<${part.slice(1, -1)}>[^/#\\\\\\s]+)`;
  });
  return new RegExp(`^${patterns.join('')}$`);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
