import { readdir } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BenchGroup, Measurement } from './support/measurement.ts';

/** `npm run bench [-- [--json] [GROUP…]]` runs benchmarks; all groups without an argument. */
const GROUPS_DIRECTORY = join(import.meta.dirname, 'groups');

function printRow(measurement: Measurement): void {
  const { name, value, unit, compared_with: other } = measurement;
  const ratio = other?.ratio;
  const quartiles =
    ratio === undefined ? '' : `, quartiles ${ratio.low.toFixed(2)} and ${ratio.high.toFixed(2)}`;
  const compared =
    other === null
      ? ''
      : `${(ratio?.median ?? value / other.value).toFixed(2)} × ${other.name} (${format(other.value)}${quartiles})`;
  process.stdout.write(
    `${name.padEnd(52)} ${format(value).padStart(10)} ${unit.padEnd(6)} ${compared}\n`,
  );
}

function format(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 2 : 0 });
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'boolean', default: false } },
});
const known = (await readdir(GROUPS_DIRECTORY))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
  .sort();
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  process.stderr.write(
    `error[USAGE]: no group ${unknown.join(', ')}\nhint: groups: ${known.join(', ')}\n`,
  );
  process.exit(2);
}
const report = values.json
  ? (measurement: Measurement): void =>
      void process.stdout.write(`${JSON.stringify(measurement)}\n`)
  : printRow;
// The servers and clients inherit it, so that other programs of the host change less.
setPriority(constants.priority.PRIORITY_HIGHEST);
for (const name of positionals.length > 0 ? positionals : known) {
  if (!values.json) process.stdout.write(`\n${name}\n`);
  const group = (await import(join(GROUPS_DIRECTORY, `${name}.ts`))) as BenchGroup;
  await group.measure(report);
}
