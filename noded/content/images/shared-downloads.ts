import type { ContentStore } from './content-store.ts';
import { DownloadGate } from './download-gate.ts';
import { type SharedTask, startSharedTask } from './shared-task.ts';

export type DownloadEvent =
  | { readonly type: 'progress'; readonly doneBytes: number; readonly totalBytes: number | null }
  | { readonly type: 'wait'; readonly message: string };
export type Emit = (event: DownloadEvent) => void;
type Download = SharedTask<string, DownloadEvent>;

/** INVARIANT: at most one download of a key runs. The next one waits for an aborted one to end. */
export class SharedDownloads {
  readonly #running = new Map<string, Download>();
  readonly #gate = new DownloadGate();
  readonly #contents: Pick<ContentStore, 'use' | 'release'>;

  constructor(contents: Pick<ContentStore, 'use' | 'release'>) {
    this.#contents = contents;
  }

  get size(): number {
    return this.#running.size;
  }

  has(key: string): boolean {
    return this.#running.has(key);
  }

  /** Ends all downloads. Resolves when they have ended. */
  async abort(reason: Error): Promise<void> {
    const running = [...this.#running.values()];
    for (const download of running) download.abort(reason);
    await Promise.all(running.map(({ ended }) => ended));
  }

  /**
   * Returns the running download of a key, or a new one. Its result is used once for each waiting
   * caller.
   * @param bring returns the SHA-256 of a content, which is used once
   */
  share(
    key: string,
    server: Pick<URL, 'host'>,
    bring: (signal: AbortSignal, emit: Emit) => Promise<string>,
  ): Pick<Download, 'join'> {
    const running = this.#running.get(key);
    if (running && !running.isAborted) return joined(running);
    const task: Download = startSharedTask<string, DownloadEvent>(
      async (signal, emit) => {
        try {
          // An abandoned download may still write its last bytes.
          await running?.ended;
          return await this.#gate.run(
            server,
            signal,
            () => emit({ type: 'wait', message: 'waiting for other downloads to end' }),
            () => bring(signal, emit),
          );
        } finally {
          if (this.#running.get(key) === task) this.#running.delete(key);
        }
      },
      (sha256, waiters) => {
        this.#contents.use(sha256, waiters);
        this.#contents.release(sha256);
      },
    );
    this.#running.set(key, task);
    return task;
  }
}

/** Reports to later callers that the download runs already. */
function joined(download: Download): Pick<Download, 'join'> {
  return {
    join: (options) => {
      options.onEvent({
        type: 'wait',
        message: 'waiting for a running download of the same image',
      });
      return download.join(options);
    },
  };
}
