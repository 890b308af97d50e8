import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceView } from '#shared/contract/view.ts';

export const RECORDINGS = join(import.meta.dirname, '../../../fixtures/requests');
/** Stands for the last session token of the service. */
export const TOKEN = '<token>';
/** Omitted in recordings: every client calls the service by its IPv4 address. */
export const HOST = '169.254.169.254';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Expected status of the answer. */
  readonly status: number;
}

/** The requests of one client, in order. */
export interface RequestRecording {
  readonly client: string;
  /** `recorded` by test/metad/record-requests.ts, or another source of the list. */
  readonly source: string;
  /** Changes to `exampleView` for this client. */
  readonly view: Partial<InstanceView>;
  readonly requests: readonly RecordedRequest[];
}

/** Returns all fixtures by file name. */
export async function loadRecordings(): Promise<ReadonlyMap<string, RequestRecording>> {
  const files = (await readdir(RECORDINGS)).filter((name) => name.endsWith('.json')).sort();
  const texts = await Promise.all(
    files.map(async (name) => await readFile(join(RECORDINGS, name), 'utf8')),
  );
  return new Map(
    files.map((name, index) => [
      name.slice(0, -'.json'.length),
      JSON.parse(texts[index] ?? '') as RequestRecording,
    ]),
  );
}
