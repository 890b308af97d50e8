/** What tells one version of a remote file from another. */
export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

export interface OpenRequest {
  /** The first byte that is wanted. */
  readonly offset: number;
  /**
   * With offset 0: asks only for a newer version. Beyond: asks for the rest of this version, or
   * else for the whole of another.
   */
  readonly validators: Validators | null;
  readonly signal: AbortSignal;
}

export type Opened =
  | { readonly kind: 'not-modified' }
  | {
      readonly kind: 'body';
      /** Where the body starts: the offset asked for, or 0. */
      readonly offset: number;
      /** Of the whole file; null when the server does not say. */
      readonly totalBytes: number | null;
      readonly validators: Validators;
      readonly body: AsyncIterable<Buffer>;
    };

/**
 * A remote file. `open` and the body throw AppError for what another attempt cannot mend, and any
 * other Error for what it may.
 */
export interface ByteSource {
  /** For messages: no credentials. */
  readonly display: string;
  open(request: OpenRequest): Promise<Opened>;
}

/**
 * Whether bytes of two answers can be told to belong to one version. Weak ETags promise only the
 * same meaning.
 */
export function identifiesVersion({ etag, lastModified }: Validators): boolean {
  return etag === null ? lastModified !== null : !etag.startsWith('W/');
}

export function isSameVersion(a: Validators, b: Validators): boolean {
  return identifiesVersion(a) && a.etag === b.etag && a.lastModified === b.lastModified;
}

/** The server ended the body before its end. */
export class TruncatedError extends Error {}
