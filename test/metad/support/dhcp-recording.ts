import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DhcpClient } from '../../../metad/dhcp/answer.ts';

export const DHCP_RECORDINGS = join(import.meta.dirname, '../../../fixtures/dhcp');
export const FIRMWARE_RECORDINGS = join(import.meta.dirname, '../../../fixtures/dhcp-firmware');
/** The guest of each recording. */
export const RECORDED_CLIENT: DhcpClient = {
  mac: '52:54:00:e1:a3:45',
  ip: '169.254.0.1',
  hostName: 'web1.example.com',
};

export interface RecordedMessage {
  /** For readers; the bytes contain it too. */
  readonly type: string | null;
  readonly hex: string;
}

/** The messages of a real DHCP client, in order. */
export interface DhcpRecording {
  readonly client: string;
  readonly messages: readonly RecordedMessage[];
}

export async function loadDhcpRecordings(
  folder = DHCP_RECORDINGS,
): Promise<ReadonlyMap<string, DhcpRecording>> {
  const files = (await readdir(folder)).sort();
  const recordings = files.map(async (file) => {
    const text = await readFile(join(folder, file), 'utf8');
    return [file.replace('.json', ''), JSON.parse(text) as DhcpRecording] as const;
  });
  return new Map(await Promise.all(recordings));
}
