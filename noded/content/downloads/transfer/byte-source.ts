export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

export interface OpenRequest {
  readonly offset: number;
  /**
   * With offset 0: requests only a newer version. Otherwise: requests the rest of this version, or
   * the whole of another.
   */
  readonly validators: Validators | null;
  readonly signal: AbortSignal;
}

export type Opened =
  | { readonly kind: 'not-modified' }
  | {
      readonly kind: 'body';
      readonly offset: number;
      /** Size of the whole file; null for an unknown one. */
      readonly totalBytes: number | null;
      readonly validators: Validators;
      readonly body: AsyncIterable<Buffer>;
    };

/**
 * A remote file. `open` and the body throw AppError for permanent failures, and any other Error for
 * failures that another attempt may avoid.
 */
export interface ByteSource {
  /** For messages, without credentials. */
  readonly display: string;
  open(request: OpenRequest): Promise<Opened>;
}

/** Whether two answers can be recognized as one version. Weak ETags do not promise equal bytes. */
export function identifiesVersion({ etag, lastModified }: Validators): boolean {
  return etag === null ? lastModified !== null : !etag.startsWith('W/');
}

export function isSameVersion(a: Validators, b: Validators): boolean {
  return identifiesVersion(a) && a.etag === b.etag && a.lastModified === b.lastModified;
}

export class TruncatedError extends Error {}
