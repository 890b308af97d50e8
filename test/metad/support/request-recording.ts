import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceView } from '#shared/contract/view.ts';

export const RECORDINGS = join(import.meta.dirname, '../../../fixtures/requests');
/** Stands for the session token that the service gave last. */
export const TOKEN = '<token>';
/** What is not said twice: every client calls the service by its IPv4 address. */
export const HOST = '169.254.169.254';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** What the service has to answer. */
  readonly status: number;
}

/** What one client asked a service for, in its order. */
export interface RequestRecording {
  readonly client: string;
  /** `recorded` by test/metad/record-requests.ts, or where else the list is from. */
  readonly source: string;
  /** What the instance has to be like, beside `exampleView`. */
  readonly view: Partial<InstanceView>;
  readonly requests: readonly RecordedRequest[];
}

/** All fixtures by their file's name. */
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
