/** Presigned URLs carry their credentials in the query. */
const SECRET_QUERY = /([?&][^=&#]*(?:sig|token|key|secret|pass|cred|auth)[^=&#]*=)[^&#]*/gi;
/** User and password between the scheme and the host; RFC 3986, 3.2.1. */
const USER_INFO = /^([a-z]+:\/\/)[^/?#]*@/i;

/** The place of an image or a package as it may be shown and logged: credentials in its URL replaced. Paths stay as they are. */
export function redactSource(source: string): string {
  if (!/^[a-z]+:\/\//i.test(source)) return source;
  return source.replace(USER_INFO, '$1<redacted>@').replace(SECRET_QUERY, '$1<redacted>');
}
