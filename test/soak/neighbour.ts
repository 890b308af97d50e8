import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs in a guest's network. Reads the instance id at an interval in milliseconds until its stdin
 * ends, then prints a NeighbourReport.
 */

export interface NeighbourReport {
  /** Milliseconds, ascending. */
  readonly latencies: readonly number[];
  readonly failures: readonly string[];
}

const URL = 'http://169.254.169.254/latest/meta-data/instance-id';
/** A longer wait counts as a failure. */
const PATIENCE_MS = 5000;
/** The first requests measure this program's own start-up. */
const WARM_UP = 50;

async function read(): Promise<string> {
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const outgoing = request(URL, { agent: false, signal }, (incoming) => {
      let body = '';
      incoming.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      incoming.on('error', reject);
      incoming.on('end', () => resolve(`${incoming.statusCode} ${body}`));
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

const [instanceId = '', everyMs = ''] = process.argv.slice(2);
const expected = `200 ${instanceId}`;
const latencies: number[] = [];
const failures: string[] = [];
const stop = new AbortController();
process.stdin.on('end', () => stop.abort()).resume();
for (let number = 0; !stop.signal.aborted; number += 1) {
  const startedAtMs = performance.now();
  try {
    const answer = await read();
    if (answer !== expected) failures.push(answer);
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error));
  }
  if (number >= WARM_UP) latencies.push(performance.now() - startedAtMs);
  await sleep(Number(everyMs), undefined, { signal: stop.signal }).catch(() => undefined);
}
latencies.sort((a, b) => a - b);
process.stdout.write(JSON.stringify({ latencies, failures } satisfies NeighbourReport));
