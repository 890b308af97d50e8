import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { performance } from 'node:perf_hooks';

/**
 * Somebody else who asks a node, one question after the other, for what costs nothing: `node
 * others-process.ts SOCKET PID`, until its standard input ends. What each answer took, and for how
 * long of it the node's main thread worked, which other programs on a busy machine do not change,
 * comes as JSON then, in ms, behind a blank as soon as it asks. A process of its own: whoever reads
 * a long list is busy with it.
 */
const [socketPath = '', pid = ''] = process.argv.slice(2);
const waits: { readonly ms: number; readonly workMs: number }[] = [];
let isOver = false;
process.stdin.on('end', () => (isOver = true)).resume();
// The first one is answered before there is anything to wait for.
await askNothing();
process.stdout.write(' ');
while (!isOver) waits.push(await askNothing());
process.stdout.write(JSON.stringify(waits));

/**
 * Of the node's main thread until now. The kernel counts late, unless the whole process is asked
 * for.
 */
function readWorkMs(): number {
  readFileSync(`/proc/${pid}/stat`);
  const [workNs] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
  return Number(workNs) / 1e6;
}

function askNothing(): Promise<(typeof waits)[number]> {
  const begunAt = performance.now();
  const before = readWorkMs();
  return new Promise((resolve, reject) => {
    const asking = request(
      { socketPath, path: '/v1/nothing', agent: false, headers: { host: 'node' } },
      (answer) =>
        answer.resume().on('end', () => {
          const ms = performance.now() - begunAt;
          resolve({ ms, workMs: readWorkMs() - before });
        }),
    );
    asking.on('error', reject);
    asking.end();
  });
}
