import { parseArgs } from 'node:util';
import { FairnessLab, describe, judge } from './fairness.ts';
import { FLOODS } from './floods.ts';
import { ATTACKERS, runSoak } from './run-soak.ts';

/**
 * `npm run soak -- --seconds 3600 --seed 7` runs hostile guests against a real metad. For half of
 * the time all attack at once. Then one guest runs each flood, compared with a quiet period before.
 */
const known = Object.keys(ATTACKERS);
const knownFloods = [...Object.keys(FLOODS), 'everything'];
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    attacks: { type: 'string', default: known.join() },
    floods: { type: 'string', default: knownFloods.join() },
  },
});
const listOf = (text: string): string[] => text.split(',').filter((name) => name !== '');
const attacks = listOf(values.attacks);
const floods = listOf(values.floods);
const seconds = Number(values.seconds);
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
const isKnown =
  attacks.every((name) => known.includes(name)) &&
  floods.every((name) => knownFloods.includes(name));
if (!(seconds >= 1) || !Number.isSafeInteger(seed) || !isKnown) {
  process.stderr.write(
    `usage: npm run soak -- [--seconds N] [--seed S] [--attacks ${known.join()}] [--floods ${knownFloods.join()}]\n`,
  );
  process.exit(2);
}
const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(`soak: ${seconds} s, seed ${seed}`);
const problems: string[] = [];
const share = attacks.length > 0 && floods.length > 0 ? seconds / 2 : seconds;
if (attacks.length > 0) {
  const report = await runSoak({ seconds: share, seed, attacks, say });
  for (const line of report.summary) say(line);
  problems.push(...report.problems);
}
if (floods.length > 0) {
  await using lab = await FairnessLab.create();
  for (const flood of floods) {
    const seen = await lab.measure(flood, share / floods.length / 2);
    say(describe(seen));
    problems.push(...judge(seen));
  }
}
for (const problem of problems) say(`problem: ${problem}`);
say(problems.length === 0 ? 'passed' : `failed: ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
