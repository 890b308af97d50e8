import { request } from 'node:http';
import { metadEvent } from '#shared/contract/metad-control.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { ChannelLab } from './channel-lab.ts';

/** Only a hanging test waits this long. */
const LIMIT_MS = 180_000;
const MAX_SHOWN = 4000;

/** Reads metad's event stream until there are enough events. */
export async function eventsAfter(
  lab: ChannelLab,
  sequence: number,
  count: number,
): Promise<MetadEvent[]> {
  return await eventsUntil(lab, sequence, (events) => events.length >= count);
}

/** Reads metad's event stream until the events suffice. */
export async function eventsUntil(
  lab: ChannelLab,
  sequence: number,
  isEnough: (events: readonly MetadEvent[]) => boolean,
): Promise<MetadEvent[]> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath: lab.controlSocket, path: `/v1/events?after=${sequence}` },
      (incoming) => {
        let text = '';
        incoming.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          seen = text;
          if (!text.endsWith('\n')) return;
          const lines = text.split('\n').filter((line) => line !== '');
          const events = lines.map((line) => metadEvent.parse(JSON.parse(line)));
          if (!isEnough(events)) return;
          outgoing.destroy();
          resolve(events);
        });
      },
    );
    let seen = '';
    // metad sends at least empty lines.
    const late = setTimeout(
      () => outgoing.destroy(new Error(`too few events: ${seen.slice(-MAX_SHOWN)}`)),
      LIMIT_MS,
    );
    outgoing.on('close', () => clearTimeout(late));
    outgoing.on('error', reject);
    outgoing.end();
  });
}
