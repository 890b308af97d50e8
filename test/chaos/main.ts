import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { runClusterChaos } from './cluster/run-cluster.ts';
import { runChaos } from './run-chaos.ts';
import { runMetadPoints } from './metad-points.ts';
import { runPoints, runVolumePoints } from './run-points.ts';

/**
 * `npm run chaos -- OPTIONS` runs a chaos test:
 * - `--installs 200 --seed 7`: installations under random kills
 * - `--points --only rename`: kills noded at each changing system call of each operation
 * - `--power`: kills noded at each sync and undoes unsynced writes; only operations without QEMU
 * - `--full`: fills the disk at each call; only operations without QEMU
 * - `--volumes`: the points of instances on LVM, without device mapper
 * - `--metad`: kills metad while an instance starts, changes and stops
 * - `--cluster --rounds 20 --faults 6 --seed 7`: faults of three nodes, their store and their
 * network under a hundred jobs
 */
const OWN_MOUNTS = 'GNT_CHAOS_OWN_MOUNTS';
const { values } = parseArgs({
  options: {
    installs: { type: 'string', default: '20' },
    seed: { type: 'string' },
    points: { type: 'boolean', default: false },
    power: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    volumes: { type: 'boolean', default: false },
    metad: { type: 'boolean', default: false },
    cluster: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    faults: { type: 'string', default: '4' },
    guests: { type: 'string', default: '3' },
    only: { type: 'string', multiple: true },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
let isWell: boolean;
const hazard = values.power ? 'power-cut' : values.full ? 'full-disk' : 'kill';
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
if (values.volumes && process.env[OWN_MOUNTS] === undefined) {
  const how = ['--mount', '--propagation', 'private', process.execPath, ...process.argv.slice(1)];
  const env = { ...process.env, [OWN_MOUNTS]: '1' };
  isWell = spawnSync('unshare', how, { stdio: 'inherit', env }).status === 0;
} else if (values.cluster) {
  say(`seed ${seed}`);
  const report = await runClusterChaos({
    ...{ seed, say, rounds: Number(values.rounds) },
    ...{ faults: Number(values.faults), guests: Number(values.guests) },
  });
  for (const problem of report.problems) say(problem);
  say(`${report.asked.length} jobs asked for, ${report.succeeded} succeeded`);
  isWell = report.problems.length === 0;
} else if (values.points || values.metad || values.volumes || hazard !== 'kill') {
  const report = await (
    values.metad ? runMetadPoints : values.volumes ? runVolumePoints : runPoints
  )({
    say,
    hazard,
    ...(values.only && { only: values.only }),
  });
  say(`${report.points} points, ${report.violations.length} violations`);
  isWell = report.violations.length === 0 && report.points > 0;
} else {
  const report = await runChaos({
    installs: Number(values.installs),
    seed,
    say,
  });
  say(
    `${report.installs} installs, ${report.installed} disks installed, ${report.problems.length} problems`,
  );
  say(
    Object.entries(report.struck)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', '),
  );
  isWell = report.problems.length === 0;
}
process.exitCode = isWell ? 0 : 1;
