import { ApiFailure, readFailure, type Schemas } from './api-client.ts';

/** Data of each event of GET /v1/events. */
export interface ChangeEvents {
  hello: Schemas['HelloEvent'];
  instances: Schemas['InstancesEvent'];
  jobs: Schemas['JobsEvent'];
  nodes: Schemas['NodesEvent'];
  objects: Schemas['ObjectsEvent'];
  /** Changes were lost: read the lists again. */
  reset: Record<string, never>;
}
export type ChangeEvent = {
  [Name in keyof ChangeEvents]: { readonly event: Name; readonly data: ChangeEvents[Name] };
}[keyof ChangeEvents];

export interface ChangeStreamOptions {
  /** Sends the request for the stream, with the given headers. */
  readonly open: (
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) => Promise<Response>;
  readonly onEvent: (event: ChangeEvent) => void;
  /** Called when the stream connects, and with the failure when it breaks. */
  readonly onState?: (state: 'open' | ApiFailure) => void;
  /** Where an earlier stream ended; kept current. Absent: begins with the next event. */
  readonly position?: StreamPosition;
  /**
   * Dispatches `wake` when the program may have been asleep. A connection that died meanwhile is
   * then replaced at once.
   */
  readonly wakes?: EventTarget;
  readonly signal: AbortSignal;
}

export interface StreamPosition {
  lastEventId: string;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;
/** The node sends a comment at least every 15 s. A longer silence is a dead connection. */
const MAX_SILENCE_MS = 40_000;
/** After a sleep, a silence of more than one comment is enough. */
const MAX_SILENCE_ASLEEP_MS = 20_000;

/**
 * Follows the changes of the cluster until the signal aborts. Connects again after each break and
 * asks for the missed events. Ends with a failure only if the session has ended.
 * @throws ApiFailure with status 401 or 403
 */
export async function followChanges(options: ChangeStreamOptions): Promise<void> {
  const { signal, wakes, onState, position = { lastEventId: '' } } = options;
  let delayMs = FIRST_DELAY_MS;
  while (!signal.aborted) {
    try {
      await readOnce(options, position, () => {
        delayMs = FIRST_DELAY_MS;
      });
    } catch (error) {
      if (signal.aborted) return;
      const failure = toFailure(error);
      onState?.(failure);
      if (failure.status === 401 || failure.status === 403) throw failure;
    }
    if (!signal.aborted) await sleep(delayMs, signal, wakes);
    delayMs = Math.min(delayMs * 2, MAX_DELAY_MS);
  }
}

function toFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  return new ApiFailure(0, { code: 'UNREACHABLE', message: 'the node does not answer' });
}

/** Reads events until the connection ends. @throws also after a regular end */
async function readOnce(
  { open, onEvent, onState, wakes, signal }: ChangeStreamOptions,
  position: StreamPosition,
  onAlive: () => void,
): Promise<never> {
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
  // Timers and monotonic clocks may stop during a sleep.
  let aliveAtMs = Date.now();
  const onWake = (): void => {
    if (Date.now() - aliveAtMs > MAX_SILENCE_ASLEEP_MS) silence.abort();
  };
  wakes?.addEventListener('wake', onWake);
  try {
    const { lastEventId } = position;
    const headers = {
      Accept: 'text/event-stream',
      ...(lastEventId && { 'Last-Event-ID': lastEventId }),
    };
    const response = await open(headers, either);
    if (!response.ok || response.body === null) throw await readFailure(response);
    onState?.('open');
    const parser = new EventParser();
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
      aliveAtMs = Date.now();
      onAlive();
      for (const { id, event, data } of parser.push(text)) {
        // The API documents the data of each event.
        const parsed: unknown = JSON.parse(data);
        onEvent({ event, data: parsed } as ChangeEvent);
        if (id !== undefined) position.lastEventId = id;
      }
    }
    throw new ApiFailure(0, { code: 'UNREACHABLE', message: 'the node ended the connection' });
  } finally {
    clearTimeout(timer);
    wakes?.removeEventListener('wake', onWake);
  }
}

interface ParsedEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Parses server-sent events (HTML standard, 9.2.6) from pieces of text. */
export class EventParser {
  #rest = '';

  push(text: string): readonly ParsedEvent[] {
    const blocks = (this.#rest + text).split(/\r?\n\r?\n/);
    this.#rest = blocks.pop() ?? '';
    return blocks.map(parseBlock).filter((event) => event.data !== '');
  }
}

function parseBlock(block: string): ParsedEvent {
  let id: string | undefined;
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ''] = /^([a-z]+)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === 'id') id = value;
    if (field === 'event') event = value;
    if (field === 'data') data.push(value);
  }
  return { id, event, data: data.join('\n') };
}

/** Waits for a time, or until the program wakes. */
function sleep(ms: number, signal: AbortSignal, wakes = new EventTarget()): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      wakes.removeEventListener('wake', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    wakes.addEventListener('wake', end);
  });
}
