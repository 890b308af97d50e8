/**
 * Undefined for what is not JSON, which is one way of not being what was asked for: the caller's
 * schema refuses it. The parser's own message quotes the text, which may hold a secret.
 */
export function parseJson(text: string | Buffer): unknown {
  try {
    return JSON.parse(text.toString());
  } catch {
    return undefined;
  }
}
