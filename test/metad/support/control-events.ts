import { request } from 'node:http';
import { metadEvent } from '#shared/contract/metad-control.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { ChannelLab } from './channel-lab.ts';

/** Reads metad's event stream until there are enough events. */
export async function eventsAfter(
  lab: ChannelLab,
  sequence: number,
  count: number,
): Promise<MetadEvent[]> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath: lab.controlSocket, path: `/v1/events?after=${sequence}` },
      (incoming) => {
        let text = '';
        incoming.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          const lines = text.split('\n').filter((line) => line !== '');
          if (!text.endsWith('\n') || lines.length < count) return;
          outgoing.destroy();
          resolve(lines.map((line) => metadEvent.parse(JSON.parse(line))));
        });
      },
    );
    outgoing.setTimeout(10_000, () => outgoing.destroy(new Error('too few events')));
    outgoing.on('error', reject);
    outgoing.end();
  });
}
