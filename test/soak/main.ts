import { parseArgs } from 'node:util';
import { ATTACKERS, runSoak } from './run-soak.ts';

/** Hostile guests against a real metad for as long as told: `npm run soak -- --seconds 3600 --seed 7`. */
const known = Object.keys(ATTACKERS);
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    attacks: { type: 'string', default: known.join() },
  },
});
const attacks = values.attacks.split(',');
const seconds = Number(values.seconds);
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
const isKnown = attacks.every((name) => known.includes(name));
if (!(seconds >= 1) || !Number.isSafeInteger(seed) || !isKnown) {
  process.stderr.write(
    `usage: npm run soak -- [--seconds N] [--seed S] [--attacks ${known.join()}]\n`,
  );
  process.exit(2);
}
const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(`soak: ${seconds} s, seed ${seed}`);
const { summary, problems } = await runSoak({ seconds, seed, attacks, say });
for (const line of summary) say(line);
for (const problem of problems) say(`problem: ${problem}`);
say(problems.length === 0 ? 'passed' : `failed: ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
