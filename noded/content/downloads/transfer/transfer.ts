import { pause } from '#shared/abort/until.ts';
import type { DownloadLimits } from '#shared/contract/download-limits.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import {
  type ByteSource,
  identifiesVersion,
  isSameVersion,
  type Opened,
  TruncatedError,
  type Validators,
} from './byte-source.ts';
import { Pace, TooSlowError } from './pace.ts';

export interface TransferSink {
  /**
   * Called before the first byte, with 0 or the offset of a resumed download; again with 0 when the
   * file changed and the download restarts.
   */
  begin(offset: number, totalBytes: number | null, validators: Validators): Promise<void>;
  /** @param signal ends a wait within the sink */
  write(chunk: Buffer, signal: AbortSignal): Promise<void>;
}

export interface TransferOptions {
  readonly source: ByteSource;
  readonly sink: TransferSink;
  readonly offset: number;
  /** Version of these bytes; with offset 0, the version that need not be fetched again. */
  readonly validators: Validators | null;
  readonly signal: AbortSignal;
  readonly limits: Pick<DownloadLimits, 'timeoutS' | 'minRate'>;
  readonly rateWindowMs?: number | undefined;
  /** First pause. It doubles up to sixteenfold. */
  readonly retryDelayMs: number;
  readonly onRetry: (message: string) => void;
}

const MAX_IDLE_ATTEMPTS = 5;
/** Ends downloads from a server that sends a few bytes per attempt. */
const MAX_ATTEMPTS = 200;
/** The rate is measured over this time; a server may be silent as long. */
const RATE_WINDOW_MS = 60_000;

const MS_PER_SECOND = 1000;

interface Position {
  offset: number;
  totalBytes: number | null;
  validators: Validators | null;
  hasBegun: boolean;
}

/**
 * Downloads a remote file over cut connections: by Range and If-Range where the server can, from
 * the start otherwise. The time limit covers all attempts. Bytes of an attempt that is too slow are
 * no progress.
 * @throws AppError DOWNLOAD_FAILED, DOWNLOAD_TRUNCATED, an error of the sink, or the signal's
 * reason
 */
export async function transfer(options: TransferOptions): Promise<'not-modified' | 'done'> {
  const { timeoutS } = options.limits;
  if (timeoutS === 0) return transferUntil(options);
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(tooLate(options.source, timeoutS)),
    timeoutS * MS_PER_SECOND,
  );
  // The timer must not keep an ending program alive.
  timer.unref();
  try {
    return await transferUntil({
      ...options,
      signal: AbortSignal.any([options.signal, late.signal]),
    });
  } finally {
    clearTimeout(timer);
  }
}

async function transferUntil(options: TransferOptions): Promise<'not-modified' | 'done'> {
  const { source, signal, onRetry } = options;
  const { offset, validators } = options;
  const position: Position = { offset, totalBytes: null, validators, hasBegun: false };
  let farthest = position.offset;
  let idle = 0;
  for (let attempt = 1; ; attempt += 1) {
    let failure: unknown;
    try {
      const outcome = await tryOnce(options, position);
      if (outcome !== 'cut') return outcome;
      failure = new TruncatedError('the connection closed early');
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AppError) throw error;
      failure = error;
    }
    // Bytes that must be fetched again are no progress.
    const isProgress = position.offset > farthest && !(failure instanceof TooSlowError);
    idle = isProgress && canResume(position) ? 0 : idle + 1;
    farthest = Math.max(farthest, position.offset);
    if (idle >= MAX_IDLE_ATTEMPTS || attempt >= MAX_ATTEMPTS) {
      throw giveUp(source, farthest, position.totalBytes, failure);
    }
    onRetry(`${messageOf(failure)}; retrying from byte ${position.offset}`);
    await pause(options.retryDelayMs * 2 ** Math.max(0, Math.min(idle, 5) - 1), signal);
    signal.throwIfAborted();
    signal.throwIfAborted();
  }
}

/** Whether the bytes belong to an identified version, without which they cannot be continued. */
function canResume({ validators }: Position): boolean {
  return validators !== null && identifiesVersion(validators);
}

async function tryOnce(
  options: TransferOptions,
  position: Position,
): Promise<'not-modified' | 'done' | 'cut'> {
  const { source, sink, signal } = options;
  const offset = canResume(position) ? position.offset : 0;
  const isConditional = !position.hasBegun || offset > 0;
  const validators = isConditional ? position.validators : null;
  const slow = new AbortController();
  const opened = await source.open({
    offset,
    validators,
    signal: AbortSignal.any([signal, slow.signal]),
  });
  if (opened.kind === 'not-modified') return 'not-modified';
  let skip = await placeSink(opened, sink, position).catch((error: unknown) => {
    // A body that is never read would stay open.
    slow.abort(error);
    throw error;
  });
  for await (const chunk of paced(opened.body, options, (reason) => slow.abort(reason))) {
    signal.throwIfAborted();
    const fresh = chunk.subarray(Math.min(skip, chunk.length));
    skip -= chunk.length - fresh.length;
    if (fresh.length === 0) continue;
    await sink.write(fresh, signal);
    position.offset += fresh.length;
  }
  signal.throwIfAborted();
  const { totalBytes } = opened;
  return skip === 0 && (totalBytes === null || position.offset === totalBytes) ? 'done' : 'cut';
}

/** Passes the chunks on and calls `stop` when they come too slowly. */
async function* paced(
  body: AsyncIterable<Buffer>,
  { limits, rateWindowMs = RATE_WINDOW_MS }: TransferOptions,
  stop: (reason: TooSlowError) => void,
): AsyncGenerator<Buffer, void> {
  const pace = new Pace({ minBytesPerSecond: limits.minRate, windowMs: rateWindowMs, stop });
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      // An AsyncIterable leaves the type of the return value open: any.
      const next = await pace.of(chunks.next() as Promise<IteratorResult<Buffer, void>>);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}

/** Positions the sink in a body. @returns the number of leading bytes that the sink has already */
async function placeSink(
  opened: Opened & { kind: 'body' },
  sink: TransferSink,
  position: Position,
): Promise<number> {
  const known = position.validators;
  position.totalBytes = opened.totalBytes;
  position.validators = opened.validators;
  if (opened.offset > 0 && known && !mayContinue(known, opened.validators)) {
    position.validators = null;
    throw new Error('the file on the server was replaced meanwhile');
  }
  // A server without ranges sends the whole of a version whose beginning the sink has.
  const continues =
    opened.offset === position.offset ||
    (known !== null && isSameVersion(known, opened.validators));
  const begin = continues ? position.offset : 0;
  if (!position.hasBegun || !continues) {
    await sink.begin(begin, opened.totalBytes, opened.validators);
  }
  position.hasBegun = true;
  position.offset = begin;
  return begin - opened.offset;
}

/** Compares validators. A partial answer need not repeat them; repeated ones must be equal. */
function mayContinue(known: Validators, now: Validators): boolean {
  return (
    (now.etag === null || known.etag === now.etag) &&
    (now.lastModified === null || known.lastModified === now.lastModified)
  );
}

function tooLate({ display }: ByteSource, timeoutS: number): AppError {
  return new AppError(
    'DOWNLOAD_FAILED',
    `the download of ${display} did not end within ${timeoutS} s`,
    {
      details: { url: display, timeoutS },
      hint: 'Allow more time: gnt-cluster modify --download-timeout SECONDS (0 = no limit)',
    },
  );
}

function giveUp(
  source: ByteSource,
  doneBytes: number,
  totalBytes: number | null,
  failure: unknown,
): AppError {
  const details = { url: source.display, doneBytes, totalBytes };
  const allowSlower =
    'Allow a lower rate: gnt-cluster modify --min-download-rate BYTES (per second)';
  const hint = failure instanceof TooSlowError ? allowSlower : undefined;
  if (failure instanceof TruncatedError || (doneBytes > 0 && totalBytes !== null)) {
    return new AppError(
      'DOWNLOAD_TRUNCATED',
      `the download of ${source.display} ended after ${doneBytes} of ${totalBytes ?? 'unknown'} bytes: ${messageOf(failure)}`,
      { details, cause: failure, hint: hint ?? 'Check the server, or give another URL.' },
    );
  }
  return new AppError(
    'DOWNLOAD_FAILED',
    `cannot download ${source.display}: ${messageOf(failure)}`,
    {
      details,
      cause: failure,
      hint: hint ?? 'Check the URL, and that this node can reach the server.',
    },
  );
}
