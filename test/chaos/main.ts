import { parseArgs } from 'node:util';
import { runChaos } from './run-chaos.ts';

/**
 * Installs under random kills, for as long as one likes: `npm run chaos -- --installs 200 --seed
 * 7`.
 */
const { values } = parseArgs({
  options: { installs: { type: 'string', default: '20' }, seed: { type: 'string' } },
});
const report = await runChaos({
  installs: Number(values.installs),
  seed: values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed),
  say: (line) => process.stdout.write(`${line}\n`),
});
process.stdout.write(
  `${report.installs} installs, ${report.installed} disks installed, ${report.problems.length} problems\n`,
);
process.exitCode = report.problems.length === 0 ? 0 : 1;
