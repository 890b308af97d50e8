import {
  classifyCloudDocument,
  CLOUD_BEGINNINGS,
  type CloudDocument,
  UNKNOWN_BEGINNING,
} from '#shared/contract/cloud-document.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface UserDataFile {
  /** The name on the command line, for messages and the part's file name. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** Kairos reads a multi-part document only with this boundary; cloud-init accepts any. */
const BOUNDARY = 'MIMEBOUNDARY';
const LINE_COLUMNS = 76;

/**
 * Returns a single file unchanged. Several become a MIME multi-part document in the given order,
 * which both cloud-init and Kairos read. A MIME message becomes a nested part.
 * @throws AppError VALIDATION for a part that cloud-init would ignore
 */
export function composeUserData(files: readonly UserDataFile[]): Buffer | null {
  const [first] = files;
  if (first === undefined) return null;
  if (files.length === 1) return first.bytes;
  const documents = files.map((file) => classifyPart(file));
  const boundary = chooseBoundary(documents);
  const parts = documents.flatMap((document, index) => [
    `--${boundary}`,
    ...formatPart(document, partName(files[index]?.name ?? '', index), boundary),
  ]);
  const head = [`Content-Type: multipart/mixed; boundary="${boundary}"`, 'MIME-Version: 1.0', ''];
  return Buffer.from([...head, ...parts, `--${boundary}--`, ''].join('\n'));
}

type PartDocument = Exclude<CloudDocument, { readonly kind: 'foreign' }>;

/** @throws AppError VALIDATION */
function classifyPart(file: UserDataFile): PartDocument {
  const found = classifyCloudDocument(file.bytes);
  if (found.kind === 'foreign') throw refusePart(file, found.why);
  return found;
}

/** Returns a boundary that occurs in none of the messages, which are nested unchanged. */
function chooseBoundary(documents: readonly PartDocument[]): string {
  const messages = documents.flatMap((one) => (one.kind === 'mime' ? [one.text] : []));
  let boundary = BOUNDARY;
  for (let count = 1; messages.some((text) => text.includes(`--${boundary}`)); count += 1)
    boundary = `${BOUNDARY}.${count}`;
  return boundary;
}

/**
 * Returns headers, an empty line and the content. Text without the boundary stays readable, other
 * content is base64. Kairos needs a cloud-config's Content-Type without parameters.
 */
function formatPart(document: PartDocument, name: string, boundary: string): readonly string[] {
  if (document.kind === 'mime') return [document.text];
  const { type, bytes } = document.part;
  const text = bytes.toString('latin1');
  const isPlain = /^[\t\n -~]*$/.test(text) && !text.includes(`--${boundary}`);
  return [
    `Content-Type: ${type}`,
    'MIME-Version: 1.0',
    `Content-Transfer-Encoding: ${isPlain ? '7bit' : 'base64'}`,
    `Content-Disposition: attachment; filename="${name}"`,
    '',
    isPlain ? text : wrapBase64(bytes),
  ];
}

function refusePart(file: UserDataFile, why: string): AppError {
  const others = 'a MIME message, or any of them compressed by gzip';
  const reason = why === UNKNOWN_BEGINNING ? '' : `: ${why}`;
  return new AppError(
    'VALIDATION',
    `option --user-data: the type of ${file.name} is unknown${reason}`,
    {
      hint: `Begin each of several files with one of ${CLOUD_BEGINNINGS.join(', ')}; or give ${others}`,
      details: { file: file.name },
    },
  );
}

function partName(path: string, index: number): string {
  const base = path.split('/').at(-1) ?? '';
  const safe = base.replaceAll(/[^A-Za-z0-9._-]/g, '_');
  return `${String(index + 1).padStart(3, '0')}-${safe === '' || safe === '-' ? 'part' : safe}`;
}

function wrapBase64(bytes: Buffer): string {
  const text = bytes.toString('base64');
  return (text.match(new RegExp(`.{1,${LINE_COLUMNS}}`, 'g')) ?? []).join('\n');
}
