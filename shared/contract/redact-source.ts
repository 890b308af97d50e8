/** Presigned URLs contain credentials in the query. */
const SECRET_NAME = /sig|token|key|secret|pass|cred|auth/i;
const SCHEME = /^[a-z]+:\/\//i;

/** Returns the source of an image or a package with credentials in its URL replaced. Paths stay. */
export function redactSource(source: string): string {
  const scheme = SCHEME.exec(source)?.[0];
  if (scheme === undefined) return source;
  const rest = source.slice(scheme.length);
  const end = rest.search(/[/?#]/);
  const authority = end === -1 ? rest : rest.slice(0, end);
  // User and password between the scheme and the host; RFC 3986, 3.2.1.
  const at = authority.lastIndexOf('@');
  const host = at === -1 ? authority : `<redacted>${authority.slice(at)}`;
  return scheme + host + redactQuery(rest.slice(authority.length));
}

/** Returns parameters with the URL of the cdrom image redacted. */
export function redactMedium<T extends { cdrom_image_path?: string | null | undefined }>(
  parameters: T,
): T {
  const { cdrom_image_path: source } = parameters;
  if (source === undefined || source === null) return parameters;
  return { ...parameters, cdrom_image_path: redactSource(source) };
}

/**
 * Redacts a query. Splitting at separators takes linear time; one expression over the whole text
 * would not.
 */
function redactQuery(text: string): string {
  return text
    .split(/([&#])/)
    .map((part, index) => {
      const start = index === 0 ? part.indexOf('?') + 1 : 0;
      const equals = part.indexOf('=', start);
      const isPair = equals !== -1 && (start > 0 || index > 0);
      if (!isPair || !SECRET_NAME.test(part.slice(start, equals))) return part;
      return `${part.slice(0, equals + 1)}<redacted>`;
    })
    .join('');
}
