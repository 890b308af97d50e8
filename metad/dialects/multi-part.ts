import { classifyCloudDocument } from '#shared/contract/cloud-document.ts';

/** Multi-part documents for cloud-init. Pure. */

import { createHash } from 'node:crypto';

/**
 * Fixed, so that equal views give equal bytes and ETags. If a document contains it, the digest of
 * all documents is appended, which none of them can contain.
 */
const BOUNDARY = 'GNTVENDORDATA';

/** Our cloud-config adds to earlier documents, and replaces nothing. */
const ADDED = 'dict(no_replace,recurse_dict)+list(no_replace)+str()';

/**
 * @param document ASCII
 * @param merging how cloud-config is merged; without it a later document replaces top-level keys
 */
export function textPart(
  type: string,
  document: string,
  name = `gnt-${type}`,
  merging = ADDED,
): string {
  return [
    `Content-Type: text/${type}; charset="us-ascii"`,
    'MIME-Version: 1.0',
    `Content-Disposition: attachment; filename="${name}"`,
    `X-Merge-Type: ${merging}`,
    '',
    document,
  ].join('\r\n');
}

/**
 * Wraps the operator's document. A MIME message becomes a nested part, in UTF-8 as cloud-init
 * expects; any other document becomes base64 with its type. An unknown format becomes text/plain;
 * noded accepts that only without parts of ours.
 */
export function operatorsPart(document: Buffer): string {
  const found = classifyCloudDocument(document);
  if (found.kind === 'mime') return found.text;
  const { type, bytes } =
    found.kind === 'known' ? found.part : { type: 'text/plain', bytes: document };
  const lines = bytes.toString('base64').match(/.{1,76}/g) ?? [];
  return [
    `Content-Type: ${type}`,
    'MIME-Version: 1.0',
    'Content-Transfer-Encoding: base64',
    '',
    ...lines,
    '',
  ].join('\r\n');
}

export function multipart(parts: readonly string[]): string {
  const isTaken = parts.some((part) => part.includes(BOUNDARY));
  const boundary = isTaken ? `${BOUNDARY}${digestOf(parts)}` : BOUNDARY;
  const body = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join('');
  return `Content-Type: multipart/mixed; boundary="${boundary}"\r\nMIME-Version: 1.0\r\n\r\n${body}--${boundary}--\r\n`;
}

/** A boundary has at most 70 characters. */
function digestOf(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 32);
}
