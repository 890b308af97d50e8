import { basename } from 'node:path';
import type { HookFile } from '#shared/contract/hooks.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { composeUserData } from '../../values/user-data.ts';
import type { ValueSource } from '../../values/value-source.ts';

/**
 * A file's bytes as the node's API carries them. `@FILE` means the same as FILE, `-` is stdin.
 * @throws AppError FILE_UNREADABLE
 */
export function readDocument(option: string, file: string, source: ValueSource): string {
  return source.readBytes(option, fileName(file)).toString('base64');
}

/** @throws AppError FILE_UNREADABLE, VALIDATION */
export function readUserData(files: readonly string[], source: ValueSource): string | null {
  const read = files.map((file) => ({
    name: fileName(file),
    bytes: source.readBytes('--user-data', fileName(file)),
  }));
  return composeUserData(read)?.toString('base64') ?? null;
}

/** Value of a document option that removes what is stored. */
export const RESET = 'default';

/**
 * Hook documents by the names of their files; none for `default`.
 * @throws AppError FILE_UNREADABLE
 */
export function readHooks(files: readonly string[], source: ValueSource): HookFile[] {
  if (files.length === 1 && files[0] === RESET) return [];
  return files.map(fileName).map((file) => ({
    name: file === '-' ? 'stdin' : basename(file),
    content: source.readBytes('--hooks', file).toString('base64'),
  }));
}

/**
 * Public keys, one a line; empty lines and comments are left out.
 * @throws AppError FILE_UNREADABLE, VALIDATION for a private key
 */
export function readSshKeys(files: readonly string[], source: ValueSource): readonly string[] {
  return files.flatMap((file) => {
    const text = source.readText('--ssh-key', fileName(file));
    if (/^-----BEGIN .*PRIVATE KEY-----/m.test(text)) {
      throw new AppError('VALIDATION', `option --ssh-key: ${file} holds a private key`, {
        hint: `give the public one, usually ${file}.pub`,
        details: { file },
      });
    }
    const keys = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
    if (keys.length > 0) return keys;
    throw new AppError('VALIDATION', `option --ssh-key: ${file} holds no key`, {
      details: { file },
    });
  });
}

function fileName(file: string): string {
  return file.startsWith('@') ? file.slice(1) : file;
}
