/** Multi-part documents as cloud-init takes them. Pure. */

/**
 * Fixed, so that equal views give equal bytes and ETags; a document that contains it gets a longer
 * one.
 */
const BOUNDARY = 'GNTVENDORDATA';

/**
 * @param document ASCII; as cloud-config it adds to what came before, and replaces nothing of it:
 *   without the header a later document takes the place of an earlier one's top-level keys
 */
export function textPart(type: string, document: string): string {
  return [
    `Content-Type: text/${type}; charset="us-ascii"`,
    'MIME-Version: 1.0',
    `Content-Disposition: attachment; filename="gnt-${type}"`,
    'X-Merge-Type: dict(no_replace,recurse_dict)+list(no_replace)+str()',
    '',
    document,
  ].join('\r\n');
}

/**
 * The operator's document: a MIME document becomes a nested part; anything else goes in base64 and cloud-init finds its type
 * by its first line.
 */
export function operatorsPart(document: Buffer): string {
  const text = document.toString('latin1');
  if (/^(content-type|mime-version):/i.test(text) && !/[\x80-\xff]/.test(text)) return text;
  const lines = document.toString('base64').match(/.{1,76}/g) ?? [];
  return [
    `Content-Type: ${contentTypeOf(text)}`,
    'MIME-Version: 1.0',
    'Content-Transfer-Encoding: base64',
    '',
    ...lines,
    '',
  ].join('\r\n');
}

/**
 * First lines that cloud-init knows (cloudinit/handlers/__init__.py); text/plain lets it look for
 * itself.
 */
function contentTypeOf(text: string): string {
  const known: readonly (readonly [string, string])[] = [
    ['#cloud-config-archive', 'text/cloud-config-archive'],
    ['#cloud-config', 'text/cloud-config'],
    ['#cloud-boothook', 'text/cloud-boothook'],
    ['#include-once', 'text/x-include-once-url'],
    ['#include', 'text/x-include-url'],
    ['#part-handler', 'text/part-handler'],
    ['## template: jinja', 'text/jinja2'],
    ['#!', 'text/x-shellscript'],
    ['\x1f\x8b', 'application/gzip'],
  ];
  return known.find(([start]) => text.startsWith(start))?.[1] ?? 'text/plain';
}

export function multipart(parts: readonly string[]): string {
  let boundary = BOUNDARY;
  while (parts.some((part) => part.includes(boundary))) boundary += 'X';
  const body = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join('');
  return `Content-Type: multipart/mixed; boundary="${boundary}"\r\nMIME-Version: 1.0\r\n\r\n${body}--${boundary}--\r\n`;
}
