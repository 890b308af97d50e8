import { isAscii, isUtf8 } from 'node:buffer';
import { gunzipSync } from 'node:zlib';
import { systemCodeOf } from '../errors/app-error.ts';

/** How cloud-init reads an operator's user or vendor data. */
export type CloudDocument =
  /** A MIME message, decompressed. */
  | { readonly kind: 'mime'; readonly text: string }
  /** A document that cloud-init recognizes by its first line. `plain` is decompressed. */
  | {
      readonly kind: 'known';
      readonly type: string;
      readonly plain: Buffer;
      /** Content of a part of a message. Compressed ASCII stays compressed. */
      readonly part: { readonly type: string; readonly bytes: Buffer };
    }
  /** cloud-init ignores it. */
  | { readonly kind: 'foreign'; readonly why: string };

/** Where cloud-init looks for `mime-version:` (cloudinit/user_data.py, `convert_string`). */
const MIME_WITHIN_BYTES = 4096;
/** Limit of decompression: four times the longest uncompressed document. */
const MAX_UNPACKED_BYTES = 4 * 1024 * 1024;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
/** First lines that cloud-init recognizes (cloudinit/handlers/__init__.py), longer ones first. */
const KNOWN: readonly (readonly [string, string])[] = [
  ['#cloud-config-archive', 'text/cloud-config-archive'],
  ['#cloud-config-jsonp', 'text/cloud-config-jsonp'],
  ['#cloud-config', 'text/cloud-config'],
  ['#cloud-boothook', 'text/cloud-boothook'],
  ['#include-once', 'text/x-include-once-url'],
  ['#include', 'text/x-include-url'],
  ['#part-handler', 'text/part-handler'],
  ['## template: jinja', 'text/jinja2'],
  ['#!', 'text/x-shellscript'],
];

export const UNKNOWN_BEGINNING = 'cloud-init does not recognize the first line';
export const CLOUD_BEGINNINGS = KNOWN.map(([beginning]) => beginning);

/** Classifies a document as cloud-init does. Pure. */
export function classifyCloudDocument(document: Buffer): CloudDocument {
  const isCompressed = document.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC);
  const plain = isCompressed ? unpack(document) : document;
  if (typeof plain === 'string') return { kind: 'foreign', why: plain };
  const head = plain.subarray(0, MIME_WITHIN_BYTES).toString('latin1').toLowerCase();
  const start = head.trimStart();
  const type = KNOWN.find(([beginning]) => start.startsWith(beginning))?.[1];
  if (type !== undefined) {
    // cloud-init puts the decompressed text of a part into the message, which keeps only ASCII
    // (cloudinit/user_data.py, `_process_msg`).
    const isKept = isCompressed && isAscii(plain);
    const part = isKept ? { type: 'application/gzip', bytes: document } : { type, bytes: plain };
    return { kind: 'known', type, plain, part };
  }
  // A first line `content-type:` is enough, because a part of our message needs no version.
  if (!head.includes('mime-version:') && !head.startsWith('content-type:'))
    return { kind: 'foreign', why: UNKNOWN_BEGINNING };
  if (!isUtf8(plain)) return { kind: 'foreign', why: 'it is a MIME message that is not in UTF-8' };
  return { kind: 'mime', text: plain.toString('utf8') };
}

/** @returns the content, or why it cannot be decompressed */
function unpack(document: Buffer): Buffer | string {
  try {
    return gunzipSync(document, { maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (error) {
    const isTooLarge = systemCodeOf(error) === 'ERR_BUFFER_TOO_LARGE';
    return isTooLarge ? 'it is larger than 4 MiB after decompression' : 'its gzip data is damaged';
  }
}
