import { request } from 'node:http';
import { performance } from 'node:perf_hooks';

/**
 * Somebody else who asks a node, one question after the other, for what costs nothing: `node
 * others-process.ts SOCKET`, until its standard input ends. What each answer took, in ms, comes as
 * JSON then, behind a blank as soon as it asks. A process of its own: whoever reads a long list is busy with it.
 */
const [socketPath = ''] = process.argv.slice(2);
const waits: number[] = [];
let isOver = false;
process.stdin.on('end', () => (isOver = true)).resume();
// The first one is answered before there is anything to wait for.
await askNothing();
process.stdout.write(' ');
while (!isOver) waits.push(await askNothing());
process.stdout.write(JSON.stringify(waits));

function askNothing(): Promise<number> {
  const begunAt = performance.now();
  return new Promise((resolve, reject) => {
    const asking = request(
      { socketPath, path: '/v1/nothing', agent: false, headers: { host: 'node' } },
      (answer) => answer.resume().on('end', () => resolve(performance.now() - begunAt)),
    );
    asking.on('error', reject);
    asking.end();
  });
}
