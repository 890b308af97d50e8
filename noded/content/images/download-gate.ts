import PQueue from 'p-queue';

const MAX_DOWNLOADS = 16;
/** Downloads from one server at a time, so that a slow server does not delay others. */
const MAX_DOWNLOADS_OF_HOST = 4;

export class DownloadGate {
  readonly #all = new PQueue({ concurrency: MAX_DOWNLOADS });
  readonly #hosts = new Map<string, PQueue>();

  /**
   * @param onWait called when the work has to wait
   * @throws errors of the work, or the signal's reason when it is aborted while waiting
   */
  async run<T>(
    { host }: Pick<URL, 'host'>,
    signal: AbortSignal,
    onWait: () => void,
    work: () => Promise<T>,
  ): Promise<T> {
    let own = this.#hosts.get(host);
    if (own === undefined) {
      own = new PQueue({ concurrency: MAX_DOWNLOADS_OF_HOST });
      this.#hosts.set(host, own);
    }
    if (isFull(own, MAX_DOWNLOADS_OF_HOST) || isFull(this.#all, MAX_DOWNLOADS)) onWait();
    try {
      return await own.add(() => this.#all.add(work, { signal }), { signal });
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      if (own.size === 0 && own.pending === 0) this.#hosts.delete(host);
    }
  }
}

function isFull({ pending, size }: PQueue, most: number): boolean {
  return pending + size >= most;
}
