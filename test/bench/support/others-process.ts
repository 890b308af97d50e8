import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { performance } from 'node:perf_hooks';

/**
 * `node others-process.ts SOCKET PID` repeats a trivial request to a node until its standard input
 * ends. Prints a blank when it starts. At the end it prints JSON with the latency of each answer,
 * and the CPU time of the node's main thread, which does not depend on the host's load, both in ms.
 * A separate process, because a client that reads a long list is busy itself.
 */
const [socketPath = '', pid = ''] = process.argv.slice(2);
const waits: { readonly ms: number; readonly workMs: number }[] = [];
let isOver = false;
process.stdin.on('end', () => (isOver = true)).resume();
// The first answer comes before the measured work begins.
await askNothing();
process.stdout.write(' ');
while (!isOver) waits.push(await askNothing());
process.stdout.write(JSON.stringify(waits));

/**
 * Returns the CPU time of the node's main thread. The kernel updates schedstat late, unless the
 * process's stat is read first.
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
