import { isUtf8 } from 'node:buffer';
import type { Document } from 'yaml';
import { MAX_NETWORK_ITEMS } from '#shared/contract/static-network.ts';
import {
  classifyCloudDocument,
  CLOUD_BEGINNINGS,
  type CloudDocument,
  UNKNOWN_BEGINNING,
} from '#shared/contract/cloud-document.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';

/**
 * Warnings of likely mistakes in documents. Documents are never refused, because guests other than
 * cloud-init read them too.
 */

/** First lines of other clients than cloud-init (documentation of each). */
const FOREIGN_FIRST_LINES = [
  /** Ignition, and systemd's credentials. */
  '{',
  '#systemd-userdata',
  /** cloudbase-init, for Windows. */
  'rem cmd',
  '#ps1',
  '<powershell>',
  '<script>',
];
const MIME_VERSION = 'MIME-Version: 1.0';
/** Where cloud-init looks for it (cloudinit/user_data.py, `convert_string`). */
const MIME_WITHIN_CHARACTERS = 4096;
const MAX_SHOWN = 40;
const UTF8_MARK = '\ufeff';

/**
 * Returns a warning for the first line, or null.
 * @param bytes user or vendor data
 * @param isAlone false if it becomes a part of a MIME message
 */
export function remarkOnBeginning(bytes: Buffer, isAlone: boolean): string | null {
  if (bytes.length === 0) return null;
  const found = classifyCloudDocument(bytes);
  switch (found.kind) {
    case 'mime':
      return isAlone ? remarkOnMessage(found.text) : null;
    case 'known':
      return remarkOnKnown(found, isAlone);
    case 'foreign':
      return found.why === UNKNOWN_BEGINNING ? remarkOnUnknown(bytes) : `ignored: ${found.why}`;
  }
}

function remarkOnMessage(text: string): string | null {
  const head = text.slice(0, MIME_WITHIN_CHARACTERS).toLowerCase();
  if (head.includes('mime-version:')) return null;
  return `cloud-init takes it for a MIME message only with the line '${MIME_VERSION}'`;
}

function remarkOnKnown(
  { type, plain }: Extract<CloudDocument, { readonly kind: 'known' }>,
  isAlone: boolean,
): string | null {
  if (isAlone && !isUtf8(plain)) return 'cloud-init ignores it: its text is not UTF-8';
  if (type !== 'text/x-shellscript' || plain.subarray(0, 2).toString() === '#!') return null;
  return 'the script cannot be run: there is white space before #!';
}

function remarkOnUnknown(bytes: Buffer): string | null {
  const text = bytes.toString('utf8');
  const first = text.split('\n').find((line) => line.trim() !== '') ?? '';
  if (FOREIGN_FIRST_LINES.some((known) => first.startsWith(known))) return null;
  const isMarked = first.startsWith(UTF8_MARK);
  if (isMarked)
    return 'cloud-init does not know its first line: there is a byte order mark before it';
  const near = suggest(first.trim().toLowerCase(), CLOUD_BEGINNINGS);
  return `cloud-init does not know its first line '${first.slice(0, MAX_SHOWN)}'${near === null ? '' : `; did you mean ${near}?`}`;
}

export function remarkOnNetworkConfig(bytes: Buffer): string | null {
  const read = readYaml(bytes.toString('utf8'), { version: '1.1' }, MAX_NETWORK_ITEMS);
  if ('problem' in read)
    return `the channel cannot be added, and the guest will have no metadata service: ${read.problem.reason}`;
  const given = resolved(read.document);
  if (given === null) return 'the channel cannot be added: its aliases expand to too much';
  const { config, version } = 'network' in given ? toMap(given['network']) : given;
  if (config === 'disabled')
    return 'it disables the network configuration, also of the channel: the guest will have no metadata service';
  return version === 1 || version === 2 ? null : 'cloud-init needs version 1 or 2';
}

/** @returns null if the library refuses to resolve its aliases */
function resolved(document: Document): Readonly<Record<string, unknown>> | null {
  try {
    return toMap(document.toJS());
  } catch {
    return null;
  }
}

function toMap(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
