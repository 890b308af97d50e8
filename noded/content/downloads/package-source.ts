import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { once } from 'node:events';
import type { DownloadLimits } from '#shared/contract/download-limits.ts';
import {
  AppError,
  isAppError,
  messageOf,
  systemCodeOf,
  toError,
} from '#shared/errors/app-error.ts';
import type { Secret } from '#shared/secret/secret.ts';
import { openHostFile } from '../../host/open-host-file.ts';
import type { ByteSource } from './transfer/byte-source.ts';
import { createFtpSource } from './transfer/ftp-source.ts';
import { createHttpSource } from './transfer/http-source.ts';
import { readNetrc } from './transfer/netrc.ts';
import { refusalOf } from './transfer/ssrf-guard.ts';
import { parseSource, type Source } from './transfer/source-url.ts';
import { transfer } from './transfer/transfer.ts';

export interface PackageOptions {
  readonly user?: string | undefined;
  readonly password?: Secret | undefined;
  readonly signal: AbortSignal;
  readonly limits: Pick<
    DownloadLimits,
    'timeoutS' | 'minRate' | 'certificateAuthority' | 'remoteHosts'
  >;
  readonly rateWindowMs?: number | undefined;
  readonly netrcFile?: string | undefined;
  readonly retryDelayMs?: number;
}

export interface OpenedPackage {
  readonly stream: Readable;
  readonly sizeBytes: number | null;
}

const DEFAULT_RETRY_DELAY_MS = 500;

/**
 * @throws AppError PACKAGE_SOURCE for anything but an absolute path or an http, https or ftp URL of
 * a .tar.gz or .tgz
 */
export function validatePackageUrl(url: string): void {
  parsePackageSource(url);
}

/**
 * Opens a personalization package as a stream, without storing it. A cut connection is resumed
 * where the server can. Errors after the first byte are the stream's, also as AppError.
 * @throws AppError PACKAGE_SOURCE, PACKAGE_DOWNLOAD with the server's status; never with a
 * credential
 */
export async function openPackage(url: string, options: PackageOptions): Promise<OpenedPackage> {
  return openBytes(parsePackageSource(url), options);
}

/** Opens a package or a file that belongs to a package. @throws AppError PACKAGE_DOWNLOAD */
export async function openBytes(source: Source, options: PackageOptions): Promise<OpenedPackage> {
  options.signal.throwIfAborted();
  return source.kind === 'path'
    ? openFile(source.path, options.signal)
    : openRemote(createSource(source.url, options), options);
}

function parsePackageSource(text: string): Source {
  const source = parseSource(text);
  const shown = text.slice(0, 500).replace(/\/\/[^/]*@/, '//');
  const refuse = (message: string, hint: string): AppError =>
    new AppError('PACKAGE_SOURCE', message, { details: { source: shown }, hint });
  if (!source) {
    throw refuse(
      `the personalization package must be an absolute path or a URL (http, https, ftp): '${shown}'`,
      'Example: https://example.com/site.tar.gz',
    );
  }
  const name = basename(source.kind === 'path' ? source.path : source.url.pathname);
  if (!/.\.(tar\.gz|tgz)$/.test(name)) {
    const extension = /\.[^.]*$/.exec(name)?.[0] ?? 'none';
    throw refuse(
      `the personalization package '${shown}' must end in .tar.gz or .tgz, not in '${extension}'`,
      'Pack it with: tar -czf NAME.tar.gz …',
    );
  }
  const refusal = source.kind === 'url' ? refusalOf(source.url) : undefined;
  if (refusal)
    throw refuse(
      `the personalization package ${shown} is refused: ${refusal}`,
      'Choose another host.',
    );
  return source;
}

/**
 * @throws AppError PACKAGE_SOURCE when a package that is a path cannot be opened here, or is empty
 */
export async function checkPackageFile(path: string): Promise<void> {
  try {
    const { file, sizeBytes } = await openPackageFile(path);
    await file.close();
    if (sizeBytes === 0) throw new Error('it is empty');
  } catch (error) {
    const reason = systemCodeOf(error) ?? messageOf(error);
    throw new AppError('PACKAGE_SOURCE', `personalization package ${path}: ${reason}`, {
      hint: 'Check the path on the node.',
      cause: error,
    });
  }
}

async function openPackageFile(path: string): Promise<{ file: FileHandle; sizeBytes: number }> {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const file = await openHostFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error('it is not a regular file');
    return { file, sizeBytes: found.size };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function openFile(path: string, signal: AbortSignal): Promise<OpenedPackage> {
  try {
    const { file, sizeBytes } = await openPackageFile(path);
    const stream = file.createReadStream({ signal });
    ignoreLateError(stream);
    return { stream, sizeBytes };
  } catch (error) {
    throw downloadFailure(path, error);
  }
}

function createSource(url: URL, options: PackageOptions): ByteSource {
  const { user, password, limits } = options;
  const login = user !== undefined && password !== undefined ? { user, password } : undefined;
  const { remoteHosts, certificateAuthority } = limits;
  const common = { url, netrc: readNetrc(options.netrcFile), login, remoteHosts };
  if (url.protocol === 'ftp:') return createFtpSource(common);
  return createHttpSource({ ...common, certificateAuthority });
}

/**
 * Resolves with the server's first answer, so that a refusal rejects the call instead of the
 * stream.
 */
function openRemote(source: ByteSource, options: PackageOptions): Promise<OpenedPackage> {
  const stream = new PassThrough();
  ignoreLateError(stream);
  const gone = new AbortController();
  // A closed reader ends the download.
  stream.on('close', () => gone.abort(new Error('the reader disconnected')));
  return new Promise((resolve, reject) => {
    let hasBegun = false;
    transfer({
      source,
      offset: 0,
      validators: null,
      signal: AbortSignal.any([options.signal, gone.signal]),
      limits: options.limits,
      rateWindowMs: options.rateWindowMs,
      retryDelayMs: options.retryDelayMs ?? DEFAULT_RETRY_DELAY_MS,
      onRetry: () => undefined,
      sink: {
        async begin(offset, sizeBytes) {
          if (hasBegun) {
            throw downloadFailure(source.display, new Error('a cut transfer cannot be resumed'));
          }
          if (offset !== 0) throw new Error('a package can only be read from its first byte');
          hasBegun = true;
          resolve({ stream, sizeBytes });
        },
        async write(chunk, signal) {
          if (!stream.write(chunk)) await once(stream, 'drain', { signal });
        },
      },
    }).then(
      () => stream.end(),
      (error: unknown) => {
        const failure = options.signal.aborted
          ? toError(options.signal.reason)
          : downloadFailure(source.display, error);
        reject(failure);
        if (hasBegun) stream.destroy(failure);
      },
    );
  });
}

/** Keeps an error without a reader from ending the program. */
function ignoreLateError(stream: Readable): void {
  stream.on('error', () => undefined);
}

function downloadFailure(display: string, error: unknown): AppError {
  if (isAppError(error, 'PACKAGE_DOWNLOAD')) return error;
  const [reason, details, hint] = isAppError(error)
    ? [error.message, error.details, error.hint]
    : [messageOf(error), {}, undefined];
  return new AppError('PACKAGE_DOWNLOAD', `personalization package ${display}: ${reason}`, {
    details: { ...details, url: display },
    hint: hint ?? 'Check the URL, and the user and password if the server needs them.',
    cause: error,
  });
}
