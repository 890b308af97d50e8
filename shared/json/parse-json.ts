/**
 * Parses JSON; undefined for invalid text, which the caller's schema then refuses. The parser's own
 * message quotes the text, which may hold a secret.
 */
export function parseJson(text: string | Buffer): unknown {
  try {
    return JSON.parse(text.toString());
  } catch {
    return undefined;
  }
}
