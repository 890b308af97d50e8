import { classifyCloudDocument } from '#shared/contract/cloud-document.ts';

/** Multi-part documents as cloud-init takes them. Pure. */

import { createHash } from 'node:crypto';

/**
 * Fixed, so that equal views give equal bytes and ETags. Where a document contains it, the
 * documents' digest follows, which none of them can contain as well.
 */
const BOUNDARY = 'GNTVENDORDATA';

/** As cloud-config it adds to what came before, and replaces nothing of it. */
const ADDED = 'dict(no_replace,recurse_dict)+list(no_replace)+str()';

/**
 * @param document ASCII
 * @param merging how cloud-config is put to what came before: without it a later document takes the
 *   place of an earlier one's top-level keys
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
 * The operator's document: a MIME message becomes a nested part, in UTF-8 as cloud-init asks for;
 * anything else goes in base64, and says its type. What cloud-init knows in no form it gets as
 * text/plain; noded took that only where nothing of ours was beside it.
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

/** With the boundary's own name no longer than the 70 characters that a boundary may have. */
function digestOf(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 32);
}
