import { parseArgs } from 'node:util';
import { runChaos } from './run-chaos.ts';
import { runPoints } from './run-points.ts';

/**
 * Installs under random kills, for as long as one likes: `npm run chaos -- --installs 200 --seed
 * 7`. With `--points` noded is killed at each call that changes something, in each operation that
 * needs no machine: `npm run chaos -- --points --only rename`.
 */
const { values } = parseArgs({
  options: {
    installs: { type: 'string', default: '20' },
    seed: { type: 'string' },
    points: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
let isWell: boolean;
if (values.points) {
  const report = await runPoints({ say, ...(values.only && { only: values.only }) });
  say(`${report.points} kill points, ${report.violations.length} violations`);
  isWell = report.violations.length === 0 && report.points > 0;
} else {
  const report = await runChaos({
    installs: Number(values.installs),
    seed: values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed),
    say,
  });
  say(
    `${report.installs} installs, ${report.installed} disks installed, ${report.problems.length} problems`,
  );
  isWell = report.problems.length === 0;
}
process.exitCode = isWell ? 0 : 1;
