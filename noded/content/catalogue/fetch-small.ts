import type { DownloadLimits } from '#shared/contract/download-limits.ts';
import {
  AppError,
  type AppErrorOptions,
  isAppError,
  systemCodeOf,
} from '#shared/errors/app-error.ts';
import { collect, TooLong } from '#shared/stream/collect.ts';
import { openBytes } from '../downloads/package-source.ts';
import { refusalOf } from '../downloads/transfer/ssrf-guard.ts';
import { parseSource, type Source } from '../downloads/transfer/source-url.ts';

/** Reads a document of a catalogue: a path on the node, or an https URL. @throws AppError */
export type FetchSmall = (source: string, maxBytes: number, signal: AbortSignal) => Promise<Buffer>;

export interface FetchSmallOptions {
  readonly limits: () => Promise<DownloadLimits>;
  readonly netrcFile: string;
}

/**
 * No server answered, so that its last answer may be used. Not thrown for any answer of a server.
 */
export class PublisherAway extends AppError {
  constructor(message: string, options: AppErrorOptions = {}) {
    super('DOWNLOAD_FAILED', message, options);
  }
}

/** @throws AppError IMAGE_SOURCE: checksums must come by https or from this node */
export function parseCatalogueSource(text: string): Source {
  const source = parseSource(text);
  const shown = text.slice(0, 300).replace(/\/\/[^/]*@/, '//');
  const refuse = (why: string, hint: string): AppError =>
    new AppError('IMAGE_SOURCE', `the catalogue '${shown}' ${why}`, { hint });
  if (source === undefined)
    throw refuse(
      'is neither an absolute path nor a URL',
      'Give a path such as /srv/images.yaml, or a URL https://…',
    );
  if (source.kind === 'path') return source;
  const { url } = source;
  if (url.protocol !== 'https:')
    throw refuse(
      'does not use https: an attacker on the way could replace the checksums',
      'Use https. Trust a private authority with gnt-cluster modify --image-ca @FILE',
    );
  if (url.username + url.password !== '')
    throw refuse('contains a login', "Write the login into the netrc file of the node's settings.");
  const refusal = refusalOf(url);
  if (refusal !== undefined) throw refuse(`is refused: ${refusal}`, 'Choose another host.');
  return source;
}

export function createFetchSmall({ limits, netrcFile }: FetchSmallOptions): FetchSmall {
  return async (text, maxBytes, signal) => {
    const source = parseCatalogueSource(text);
    try {
      const { stream } = await openBytes(source, { signal, netrcFile, limits: await limits() });
      try {
        return await collect(stream, maxBytes);
      } finally {
        stream.destroy();
      }
    } catch (error) {
      if (error instanceof TooLong)
        throw new AppError('CATALOGUE_INVALID', `${text} has ${error.message}`, {
          hint: 'Check that the URL names a catalogue.',
          cause: error,
        });
      if (!isAppError(error, 'PACKAGE_DOWNLOAD')) throw error;
      const message = error.message.replace(/^personalization package /, '');
      const facts = { details: { source: text }, hint: error.hint, cause: error };
      throw isOfNetwork(error)
        ? new PublisherAway(message, facts)
        : new AppError('DOWNLOAD_FAILED', message, { ...facts, cause: error });
    }
  };
}

function isOfNetwork(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; { cause } = cause)
    if (NO_NETWORK.has(systemCodeOf(cause) ?? '')) return true;
  return false;
}

const NO_NETWORK: ReadonlySet<string> = new Set([
  ...['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE'],
  ...['ETIMEDOUT', 'ENETUNREACH', 'ENETDOWN', 'EHOSTUNREACH', 'EHOSTDOWN', 'EADDRNOTAVAIL'],
]);
