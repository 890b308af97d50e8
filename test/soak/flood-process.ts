import { createSeededRandom } from '../lab/seeded-random.ts';
import { FLOODS, everything } from './floods.ts';

/** Runs one flood in its own process until its stdin ends, then prints its counts. */
const [name = '', namespace = ''] = process.argv.slice(2);
const flood = name === 'everything' ? everything : FLOODS[name];
if (!flood) throw new Error(`no flood ${name}`);
const stop = new AbortController();
process.stdin.on('end', () => stop.abort()).resume();
const counts: Record<string, number> = {};
await flood({
  namespace,
  random: createSeededRandom(1).below,
  signal: stop.signal,
  count: (what, by = 1) => (counts[what] = (counts[what] ?? 0) + by),
  problem: (text) => process.stderr.write(`${text}\n`),
});
process.stdout.write(JSON.stringify(counts));
process.exit(0);
