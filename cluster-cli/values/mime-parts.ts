/** A leaf of a MIME message; the names of headers are in lower case. */
export interface MimePart {
  readonly type: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly bytes: Buffer;
}

/** Levels of nested messages. Real documents have one or two. */
const MAX_NESTING = 8;

/** Returns the leaves of a message in their order, decoded (RFC 2045, RFC 2046). Pure. */
export function splitMimeMessage(text: string, depth = 0): readonly MimePart[] {
  const [head = '', ...rest] = text.split(/\r?\n\r?\n/);
  const headers = parseHeaders(head);
  const body = text.slice(head.length).replace(/^(\r?\n){1,2}/, '');
  const given = headers.get('content-type') ?? 'text/plain';
  const type = (given.split(';', 1)[0] ?? '').trim().toLowerCase();
  if (!type.startsWith('multipart/')) {
    const bytes = rest.length === 0 ? Buffer.alloc(0) : decodeBody(body, headers);
    return [{ type, headers, bytes }];
  }
  const boundary = /boundary="?([^";]+)"?/i.exec(given)?.[1]?.trimEnd();
  if (boundary === undefined || depth === MAX_NESTING) return [];
  return betweenBoundaries(body, boundary).flatMap((part) => splitMimeMessage(part, depth + 1));
}

function parseHeaders(head: string): ReadonlyMap<string, string> {
  const unfolded = head.replaceAll(/\r?\n[ \t]+/g, ' ');
  return new Map(
    [...unfolded.matchAll(/^([!-9;-~]+):(.*)$/gm)].map(([, name = '', value = '']) => [
      name.toLowerCase(),
      value.trim(),
    ]),
  );
}

function betweenBoundaries(body: string, boundary: string): readonly string[] {
  const parts: string[][] = [];
  for (const line of body.split('\n')) {
    const marker = line.trimEnd();
    if (marker === `--${boundary}--`) break;
    if (marker === `--${boundary}`) parts.push([]);
    else parts.at(-1)?.push(line);
  }
  return parts.map((lines) => lines.join('\n'));
}

function decodeBody(body: string, headers: ReadonlyMap<string, string>): Buffer {
  switch ((headers.get('content-transfer-encoding') ?? '').trim().toLowerCase()) {
    case 'base64':
      return Buffer.from(body, 'base64');
    case 'quoted-printable':
      return decodeQuotedPrintable(body);
    default:
      return Buffer.from(body);
  }
}

function decodeQuotedPrintable(body: string): Buffer {
  const joined = body.replaceAll(/=[ \t]*\r?\n/g, '');
  const bytes = joined.replaceAll(/=([0-9A-F]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1');
}
