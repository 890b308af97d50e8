import type { ServerResponse } from 'node:http';
import type { EventLog, EventRecord } from '../channel/event-log.ts';

/**
 * Interval of empty lines, so that both ends notice a broken connection. NDJSON readers skip them.
 */
const HEARTBEAT_MS = 15_000;

/** Streams events as NDJSON until the reader disconnects. A slow reader catches up from the log. */
export function streamEvents(response: ServerResponse, events: EventLog, after: number): void {
  let position = after;
  let isBehind = false;
  const send = (record: EventRecord): void => {
    position = record.sequence;
    isBehind = !response.write(record.line, (error) => {
      if (!error) reading.handedOver(record.sequence);
    });
  };
  const catchUp = (): void => {
    isBehind = false;
    const records = events.recordsAfter(position);
    if (records.length === 0) reading.handedOver(events.lastSequence);
    for (const record of records) {
      if (isBehind) return;
      send(record);
    }
  };
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Cache-Control': 'no-store' });
  response.flushHeaders();
  const reading = events.subscribe((record) => {
    if (!isBehind) send(record);
  });
  catchUp();
  response.on('drain', catchUp);
  const heartbeat = setInterval(() => {
    if (!isBehind) isBehind = !response.write('\n');
  }, HEARTBEAT_MS);
  response.on('close', () => {
    reading.end();
    clearInterval(heartbeat);
  });
}
