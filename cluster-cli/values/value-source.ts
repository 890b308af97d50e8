import { isUtf8 } from 'node:buffer';
import { closeSync, openSync, readSync } from 'node:fs';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { MIB } from '#shared/units/bytes.ts';

/**
 * Bytes of one file: the node's API accepts 1 MiB of content, and 65 536 characters of a parameter.
 */
const MAX_FILE_BYTES = MIB;
const CHUNK_BYTES = 65_536;

/**
 * Reads values that options name as `@FILE`, `@-` or FILE. Files may be pipes, so that
 * `name=@<(pass show x)` works.
 * INVARIANT: stdin is read for one option only; a second one would silently be empty.
 * @param stdinFd the descriptor of `-`
 */
export function createValueSource(stdinFd = 0) {
  let stdinOption: string | undefined;

  /**
   * Returns the file's bytes; `-` is stdin.
   * @throws AppError FILE_UNREADABLE, or USAGE if another option has read stdin.
   */
  function readBytes(option: string, path: string): Buffer {
    if (path === '-') {
      if (stdinOption !== undefined) {
        throw new AppError('USAGE', `${stdinOption} and ${option} cannot both read stdin`, {
          hint: 'Use @FILE for one of them',
        });
      }
      stdinOption = option;
    }
    return readBounded(option, path, stdinFd);
  }

  /**
   * Returns the file's unchanged UTF-8 text, for files that are not values.
   * @throws as readText
   */
  const readWholeText = (option: string, path: string): string =>
    decodeUtf8(option, path, readBytes(option, path));

  /**
   * Returns the file's UTF-8 text without one trailing newline.
   * @throws as readBytes, and VALIDATION if it is not text.
   */
  function readText(option: string, path: string): string {
    const text = readWholeText(option, path);
    return text.endsWith('\n') ? text.slice(0, text.endsWith('\r\n') ? -2 : -1) : text;
  }

  return {
    readBytes,
    readText,
    readWholeText,
    /**
     * Returns the value of an option: the text itself, the content of `@FILE`, or `@…` written as
     * `\@…`.
     */
    resolve(option: string, value: string): string {
      if (value.startsWith('@')) return readText(option, value.slice(1));
      return value.startsWith('\\@') ? value.slice(1) : value;
    },
  };
}

export type ValueSource = ReturnType<typeof createValueSource>;

function readBounded(option: string, path: string, stdinFd: number): Buffer {
  if (path === '') {
    throw new AppError('USAGE', `${labelOf(option)}: the name of the file is empty`, {
      hint: isOption(option)
        ? "Write @FILE, @- for stdin, or '\\@' for a value that begins with @"
        : 'Name a file, or write - for stdin',
    });
  }
  const chunks: Buffer[] = [];
  let total = 0;
  try {
    const fd = path === '-' ? stdinFd : openSync(path, 'r');
    try {
      for (;;) {
        const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
        const length = readSync(fd, chunk);
        if (length === 0) break;
        total += length;
        if (total > MAX_FILE_BYTES) break;
        chunks.push(chunk.subarray(0, length));
      }
    } finally {
      if (fd !== stdinFd) closeSync(fd);
    }
  } catch (error) {
    throw unreadable(option, path, error);
  }
  if (total > MAX_FILE_BYTES) {
    throw new AppError('VALIDATION', `${labelOf(option)}: ${nameOf(path)} is larger than 1 MiB`, {
      details: { option, file: path },
    });
  }
  return Buffer.concat(chunks);
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  EAGAIN: 'nothing to read from stdin',
};

function unreadable(option: string, path: string, error: unknown): AppError {
  const code = systemCodeOf(error);
  const reason = (code && ownValue(REASONS, code)) ?? code ?? 'unknown reason';
  return new AppError(
    'FILE_UNREADABLE',
    `${labelOf(option)}: ${nameOf(path)} cannot be read: ${reason}`,
    {
      hint: 'Check the name and the permissions of the file',
      details: { option, file: path },
      cause: error,
    },
  );
}

function decodeUtf8(option: string, path: string, bytes: Buffer): string {
  const problem = isUtf8(bytes) ? undefined : 'is not UTF-8 text';
  // Parameters become environment variables, which cannot contain NUL.
  const refusal = problem ?? (bytes.includes(0) ? 'contains a NUL character' : undefined);
  if (refusal === undefined) return bytes.toString();
  throw new AppError('VALIDATION', `${labelOf(option)}: ${nameOf(path)} ${refusal}`, {
    details: { option, file: path },
  });
}

/** Files are also named by arguments, such as `FILE`. */
function isOption(option: string): boolean {
  return option.startsWith('-');
}

function labelOf(option: string): string {
  return isOption(option) ? `option ${option}` : option;
}

function nameOf(path: string): string {
  return path === '-' ? 'stdin' : path;
}
