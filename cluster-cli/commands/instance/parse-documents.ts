import { basename } from 'node:path';
import type { BootReporting } from '#shared/contract/boot-report.ts';
import type { Silence } from '#shared/contract/boot-silence.ts';
import type { HookFile } from '#shared/contract/hooks.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { remarkOnCloudConfigs } from './cloud-config-remarks.ts';
import { remarkOnBeginning, remarkOnNetworkConfig } from './cloud-documents.ts';
import { type CloudPart, splitCloudDocument } from '../../values/cloud-parts.ts';
import { explainSilentDocuments } from '../../values/boot-report-obstacles.ts';
import { composeUserData, type UserDataFile } from '../../values/user-data.ts';
import type { ValueSource } from '../../values/value-source.ts';

export type DocumentOption = '--vendor-data' | '--network-config';

/**
 * Returns a file's bytes in base64. `@FILE` means the same as FILE, `-` is stdin.
 * @throws AppError FILE_UNREADABLE
 */
export function readDocument(option: DocumentOption, file: string, context: Context): string {
  const name = fileName(file);
  const bytes = context.values.readBytes(option, name);
  if (option === '--vendor-data') warnOfDocuments(option, [{ name, bytes }], context);
  else warn(option, { name: file, text: remarkOnNetworkConfig(bytes) }, context);
  return bytes.toString('base64');
}

/** @throws AppError FILE_UNREADABLE, VALIDATION */
export function readUserData(files: readonly string[], context: Context): string | null {
  const read = files.map((file) => ({
    name: fileName(file),
    bytes: context.values.readBytes('--user-data', fileName(file)),
  }));
  warnOfDocuments('--user-data', read, context);
  return composeUserData(read)?.toString('base64') ?? null;
}

function warnOfDocuments(option: string, files: readonly UserDataFile[], context: Context): void {
  // The metadata service makes vendor data a part of its message.
  const isAlone = option === '--user-data' && files.length === 1;
  for (const { name, bytes } of files)
    warn(option, { name, text: remarkOnBeginning(bytes, isAlone) }, context);
  const parts = files.flatMap(({ name, bytes }) => splitCloudDocument(name, bytes));
  for (const remark of remarkOnCloudConfigs(parts)) warn(option, remark, context);
}

interface GivenDocuments {
  readonly userData?: string | null | undefined;
  readonly vendorData?: string | null | undefined;
  readonly communication?: boolean | undefined;
  readonly hvparams?: { readonly boot_report?: BootReporting | null | undefined } | undefined;
}

/**
 * Warns of documents that keep cloud-init from reporting its boot. Returns the reason for callers
 * that wait for the report; null if cloud-init can report.
 */
export function warnOfSilence(
  { userData, vendorData, communication, hvparams }: GivenDocuments,
  context: Pick<Context, 'warn'>,
): Silence | null {
  if (communication !== true || hvparams?.boot_report === 'no') return null;
  const silence = explainSilentDocuments(
    { userData: split(userData), vendorData: split(vendorData) },
    hvparams?.boot_report ?? 'vendor-data',
  );
  if (silence !== null)
    context.warn(`cloud-init will report no boot verdict: ${silence.reason}. ${silence.hint}`);
  return silence;
}

function split(document: string | null | undefined): readonly CloudPart[] {
  return document == null ? [] : splitCloudDocument('', Buffer.from(document, 'base64'));
}

function warn(
  option: string,
  { name, text }: { readonly name: string; readonly text: string | null },
  context: Context,
): void {
  if (text !== null) context.warn(`${option} ${name}: ${text}`);
}

/** Value of an option that unsets the stored value. */
export const NONE = 'none';
/** The former spelling for documents, hooks, timeouts and defaults of launch. */
const FORMER_NONE = 'default';

/** Tells whether a value unsets the stored one. Warns of the former spelling. */
export function isUnset(option: string, given: string, { warn }: Pick<Context, 'warn'>): boolean {
  if (given === FORMER_NONE)
    warn(`${option} ${FORMER_NONE} is deprecated: write ${option} ${NONE}`);
  return given === NONE || given === FORMER_NONE;
}

/** Returns null for `none`, which unsets the stored value, and undefined for no value. */
export function orUnset(
  given: string | undefined,
  read: (given: string) => string = (text) => text,
): string | null | undefined {
  if (given === undefined) return undefined;
  return given === NONE ? null : read(given);
}

/**
 * Reads hook documents by file name; an empty list for `none`.
 * @throws AppError FILE_UNREADABLE
 */
export function readHooks(files: readonly string[], context: Context): HookFile[] {
  const [first = ''] = files;
  if (files.length === 1 && isUnset('--hooks', first, context)) return [];
  return files.map(fileName).map((file) => ({
    name: file === '-' ? 'stdin' : basename(file),
    content: context.values.readBytes('--hooks', file).toString('base64'),
  }));
}

/**
 * Reads public keys, one per line, without empty lines and comments.
 * @throws AppError FILE_UNREADABLE, VALIDATION for a private key
 */
export function readSshKeys(files: readonly string[], source: ValueSource): readonly string[] {
  return files.flatMap((file) => {
    const text = source.readText('--ssh-key', fileName(file));
    if (/^-----BEGIN .*PRIVATE KEY-----/m.test(text)) {
      throw new AppError('VALIDATION', `option --ssh-key: ${file} is a private key`, {
        hint: `Use the public key, usually --ssh-key ${file}.pub`,
        details: { file },
      });
    }
    const keys = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
    const wrong = keys.find((key) => !PUBLIC_KEY.test(key));
    if (wrong !== undefined) {
      throw new AppError('VALIDATION', `option --ssh-key: a line of ${file} is not a public key`, {
        hint: 'Write lines as in authorized_keys: [options] TYPE BASE64 [comment], such as ssh-ed25519 AAAA… me@host',
        details: { file },
      });
    }
    if (keys.length > 0) return keys;
    throw new AppError('VALIDATION', `option --ssh-key: ${file} contains no key`, {
      hint: 'ssh-keygen -t ed25519 creates a key',
      details: { file },
    });
  });
}

/** A line of authorized_keys, see sshd(8): options, type and key, whose base64 begins with AAAA. */
const PUBLIC_KEY = /(^|\s)(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+ AAAA/;

function fileName(file: string): string {
  return file.startsWith('@') ? file.slice(1) : file;
}
