import type { MetadEvent } from '#shared/contract/metad-control.ts';
import {
  MAX_EVENTS_KEPT,
  MAX_EVENT_BYTES_KEPT,
  MAX_EVENT_BYTES_KEPT_OF_ALL,
} from '../config/limits.ts';

export type EventBody = MetadEvent['event'];

export interface EventRecord {
  readonly sequence: number;
  readonly line: string;
}

export interface EventReading {
  /** Marks everything up to this number as in the kernel or at the reader. */
  handedOver(sequence: number): void;
  end(): void;
}

interface Reader {
  readonly take: (record: EventRecord) => void;
  handedOver: number;
  /** A wait for this reader timed out. Later waits ignore it until it has caught up. */
  isSlow: boolean;
}

interface Waiter {
  readonly sequence: number;
  readonly resolve: () => void;
}

interface Ring {
  records: EventRecord[];
  bytes: number;
  /** Dropped records: their number, and the sequence number of the last one. */
  lost: number;
  lostUpTo: number;
}

export interface EventLogLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** Limit of the bytes in the logs of all instances. */
  readonly maxBytesOfAll: number;
}

const LIMITS: EventLogLimits = {
  maxEvents: MAX_EVENTS_KEPT,
  maxBytes: MAX_EVENT_BYTES_KEPT,
  maxBytesOfAll: MAX_EVENT_BYTES_KEPT_OF_ALL,
};

/**
 * Events of all instances in one order, kept for times when the node daemon is away.
 *
 * INVARIANTS: sequence numbers only grow; the log is bounded per instance and in total, and the
 * largest log is trimmed first, so that one guest cannot push out another's events; a reader gets
 * one `gap` in place of an instance's dropped events.
 */
export class EventLog {
  readonly #rings = new Map<string, Ring>();
  readonly #readers = new Set<Reader>();
  /** In the order of their sequence numbers. */
  readonly #waiters = new Set<Waiter>();
  readonly #limits: EventLogLimits;
  #sequence: number;
  #bytes = 0;

  /**
   * @param firstSequence larger than any sequence number of an earlier process, so that a reader's
   * position stays valid
   */
  constructor(firstSequence: number, limits: EventLogLimits = LIMITS) {
    this.#sequence = firstSequence;
    this.#limits = limits;
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  append(instance: string, event: EventBody): void {
    const sequence = ++this.#sequence;
    const record = { sequence, line: formatEvent({ sequence, instance, event }) };
    let ring = this.#rings.get(instance);
    if (!ring) this.#rings.set(instance, (ring = emptyRing()));
    ring.records.push(record);
    ring.bytes += record.line.length;
    this.#bytes += record.line.length - trim(ring, this.#limits);
    if (this.#bytes > this.#limits.maxBytesOfAll) this.#trimLargest();
    for (const reader of this.#readers) reader.take(record);
  }

  recordsAfter(after: number): readonly EventRecord[] {
    const found: EventRecord[] = [];
    for (const [instance, ring] of this.#rings) {
      if (ring.lost > 0 && ring.lostUpTo > after) {
        const event: EventBody = { type: 'gap', lost: ring.lost };
        found.push({
          sequence: ring.lostUpTo,
          line: formatEvent({ sequence: ring.lostUpTo, instance, event }),
        });
      }
      for (const record of ring.records) if (record.sequence > after) found.push(record);
    }
    return found.sort((a, b) => a.sequence - b.sequence);
  }

  subscribe(take: (record: EventRecord) => void): EventReading {
    const reader: Reader = { take, handedOver: 0, isSlow: false };
    this.#readers.add(reader);
    return {
      handedOver: (sequence) => {
        reader.handedOver = Math.max(reader.handedOver, sequence);
        if (reader.handedOver >= this.#sequence) reader.isSlow = false;
        this.#wake();
      },
      end: () => {
        this.#readers.delete(reader);
        this.#wake();
      },
    };
  }

  /**
   * Resolves when every reader has all events so far: an acknowledgement then outlasts a kill of
   * this process. Resolves at once without readers, and after `limitMs` in any case. A reader that
   * timed out is ignored until it has caught up.
   */
  async untilHandedOver(limitMs: number): Promise<void> {
    const sequence = this.#sequence;
    if (this.#handedOver() >= sequence) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter: Waiter = { sequence, resolve };
    this.#waiters.add(waiter);
    const timer = setTimeout(() => {
      for (const reader of this.#readers) reader.isSlow ||= reader.handedOver < sequence;
      this.#wake();
    }, limitMs);
    await promise;
    clearTimeout(timer);
  }

  /** Returns the number up to which every reader has everything, slow readers excluded. */
  #handedOver(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const { isSlow, handedOver } of this.#readers)
      if (!isSlow) least = Math.min(least, handedOver);
    return least;
  }

  #wake(): void {
    const handedOver = this.#handedOver();
    for (const waiter of this.#waiters) {
      if (waiter.sequence > handedOver) return;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  forget(instance: string): void {
    this.#bytes -= this.#rings.get(instance)?.bytes ?? 0;
    this.#rings.delete(instance);
  }

  /** Trims to three quarters, so that not every later event causes a trim. */
  #trimLargest(): void {
    const maxBytes = (this.#limits.maxBytesOfAll * 0.75) / this.#rings.size;
    for (const ring of this.#rings.values()) {
      this.#bytes -= trim(ring, { ...this.#limits, maxBytes });
    }
  }
}

function emptyRing(): Ring {
  return { records: [], bytes: 0, lost: 0, lostUpTo: 0 };
}

/** @returns the dropped bytes */
function trim(ring: Ring, limits: EventLogLimits): number {
  let count = 0;
  let bytes = ring.bytes;
  while (
    count < ring.records.length - 1 &&
    (ring.records.length - count > limits.maxEvents || bytes > limits.maxBytes)
  ) {
    bytes -= ring.records[count]?.line.length ?? 0;
    count++;
  }
  if (count === 0) return 0;
  // Drop a further sixteenth: removing records one by one would copy the array each time.
  const spare = Math.min(ring.records.length - 1, count + (limits.maxEvents >> 4));
  const dropped = ring.records.splice(0, spare);
  const droppedBytes = dropped.reduce((sum, record) => sum + record.line.length, 0);
  ring.bytes -= droppedBytes;
  ring.lost += dropped.length;
  ring.lostUpTo = dropped.at(-1)?.sequence ?? ring.lostUpTo;
  return droppedBytes;
}

function formatEvent(event: MetadEvent): string {
  return `${JSON.stringify(event)}\n`;
}
