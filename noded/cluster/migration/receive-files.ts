import type { Duplex } from 'node:stream';
import type { MovedFile } from '#shared/contract/move.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import type { Arrival } from '../../storage/moving-disks.ts';
import { IncomingRecords } from './incoming-records.ts';
import { nothingArrives } from './target-refusals.ts';

interface Receiving {
  readonly sizeBytes: number;
  /** All data before it is written. */
  position: number;
  stream: IncomingRecords | undefined;
  failure: Error | null;
}

/** Receives files of an arrival as streams, at most one for each file. */
export class ReceivingFiles {
  readonly #arrival: Pick<Arrival, 'write'>;
  readonly #files: ReadonlyMap<string, Receiving>;
  readonly #opening = new SerialQueue<string>();
  #isOver = false;
  #heardAtMs = -Infinity;

  constructor(arrival: Pick<Arrival, 'write'>, files: readonly MovedFile[]) {
    this.#arrival = arrival;
    this.#files = new Map(
      files.map(({ name, sizeBytes }) => [
        name,
        { sizeBytes, position: 0, stream: undefined, failure: null },
      ]),
    );
  }

  /**
   * Opens a stream, which ends an earlier one of the file. The sender learns of a failure when it
   * opens the next stream.
   * @throws AppError NOT_FOUND, and the failure of the earlier stream
   */
  open(name: string): Promise<Duplex> {
    return this.#opening.run(name, async () => {
      const file = this.#files.get(name);
      if (file === undefined) throw nothingArrives();
      await endStream(file);
      if (this.#isOver) throw nothingArrives();
      if (file.failure !== null) throw file.failure;
      const { position, sizeBytes } = file;
      const write = async (message: Buffer, to: number): Promise<void> => {
        this.#heardAtMs = performance.now();
        await this.#arrival.write(name, message);
        file.position = to;
      };
      const stream = new IncomingRecords({ position, sizeBytes, write });
      // The next call of `open` throws it.
      stream.on('error', () => undefined);
      file.stream = stream;
      return stream;
    });
  }

  /** Returns the time since the last record. */
  silenceMs(): number {
    return performance.now() - this.#heardAtMs;
  }

  /** Ends all streams, and opens no others. Resolves when nothing is written any longer. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all([...this.#files.values()].map(endStream));
  }
}

async function endStream(file: Receiving): Promise<void> {
  const { stream } = file;
  if (stream === undefined) return;
  stream.destroy();
  await stream.whenIdle();
  file.failure ??= stream.errored;
}
