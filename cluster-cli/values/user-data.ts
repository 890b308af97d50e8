import { AppError } from '#shared/errors/app-error.ts';

export interface UserDataFile {
  /** The name as given on the command line, for messages and the part's file name. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** Kairos reads a multi-part document only with this boundary; cloud-init takes any. */
const BOUNDARY = 'MIMEBOUNDARY';
const LINE_COLUMNS = 76;

/**
 * What the first line of a part says of it, as cloud-init reads it (its documentation, "User-data
 * formats").
 */
const PART_TYPES: readonly (readonly [prefix: string, type: string])[] = [
  ['#cloud-config-archive', 'text/cloud-config-archive'],
  ['#cloud-config-jsonp', 'text/cloud-config-jsonp'],
  ['#cloud-config', 'text/cloud-config'],
  ['#!', 'text/x-shellscript'],
  ['#include-once', 'text/x-include-once-url'],
  ['#include', 'text/x-include-url'],
  ['#cloud-boothook', 'text/cloud-boothook'],
  ['#part-handler', 'text/part-handler'],
  ['#upstart-job', 'text/upstart-job'],
  ['## template: jinja', 'text/jinja2'],
];

/**
 * One file is the user data as it is, bytes untouched. Several become one MIME multi-part document,
 * in the order given, that cloud-init and Kairos both read: the type of a part is on its first
 * line, and a cloud-config part's Content-Type carries nothing else.
 * @throws AppError VALIDATION for a part of several whose type cannot be told.
 */
export function composeUserData(files: readonly UserDataFile[]): Buffer | null {
  const [first] = files;
  if (first === undefined) return null;
  if (files.length === 1) return first.bytes;
  const lines = [
    `Content-Type: multipart/mixed; boundary="${BOUNDARY}"`,
    'MIME-Version: 1.0',
    '',
    ...files.flatMap((file, index) => [`--${BOUNDARY}`, ...formatPart(file, index)]),
    `--${BOUNDARY}--`,
    '',
  ];
  return Buffer.from(lines.join('\n'));
}

/**
 * Headers, an empty line and the content. Text that cannot hold the boundary stays readable,
 * everything else is base64.
 */
function formatPart(file: UserDataFile, index: number): readonly string[] {
  const type = partTypeOf(file);
  const text = file.bytes.toString('latin1');
  const isPlain = /^[\t\n -~]*$/.test(text) && !text.includes(`--${BOUNDARY}`);
  return [
    `Content-Type: ${type}`,
    'MIME-Version: 1.0',
    `Content-Transfer-Encoding: ${isPlain ? '7bit' : 'base64'}`,
    `Content-Disposition: attachment; filename="${partName(file, index)}"`,
    '',
    isPlain ? text : wrapBase64(file.bytes),
  ];
}

function partTypeOf(file: UserDataFile): string {
  const head = file.bytes.subarray(0, 64).toString('latin1');
  const known = PART_TYPES.find(([prefix]) => head.startsWith(prefix));
  if (known) return known[1];
  throw new AppError('VALIDATION', `option --user-data: the type of ${file.name} is unknown`, {
    hint: `The first line of each of several files must name its type: ${PART_TYPES.map(([prefix]) => prefix).join(', ')}`,
    details: { file: file.name },
  });
}

function partName(file: UserDataFile, index: number): string {
  const base = file.name.split('/').at(-1) ?? '';
  const safe = base.replaceAll(/[^A-Za-z0-9._-]/g, '_');
  return `${String(index + 1).padStart(3, '0')}-${safe === '' || safe === '-' ? 'part' : safe}`;
}

function wrapBase64(bytes: Buffer): string {
  const text = bytes.toString('base64');
  return (text.match(new RegExp(`.{1,${LINE_COLUMNS}}`, 'g')) ?? []).join('\n');
}
