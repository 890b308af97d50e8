import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { opcode as opcodeSchema, type Opcode } from '#shared/contract/opcode.ts';
import { NOW_MS, sampleJob } from '../lab/sample-job.ts';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';
import { sampleInstance, sampleOs } from './support/samples.ts';

/**
 * Commands of all programs in fixtures/commands.txt: a line `$ COMMAND`, `> ` and each submitted
 * opcode without defaults, the output, and `[STATUS]`. GNT_UPDATE_COMMANDS=1 rewrites the file;
 * read the diff before you commit it.
 */
const FILE = join(import.meta.dirname, '../../fixtures/commands.txt');
process.env['TZ'] = 'UTC';
const isRenewed = process.env['GNT_UPDATE_COMMANDS'] === '1';

test('commands submit these opcodes, and print these texts', async (t) => {
  const kept = await readFile(FILE, 'utf8');
  const daemon = await startDaemonStandIn();
  t.after(() => daemon.close());
  fill(daemon);
  let seen = kept.slice(0, kept.indexOf('\n$ ') + 1);
  for (const [, line = ''] of kept.matchAll(/^\$ (.*)$/gm)) {
    await t.test(line, async () => {
      const told = await follow(line, daemon);
      seen += told;
      if (!isRenewed) assert.ok(kept.includes(told), `it is told now:\n${told}`);
    });
  }
  if (isRenewed) await writeFile(FILE, seen);
  else assert.equal(seen, kept, basename(FILE));
});

function fill(daemon: DaemonStandIn): void {
  daemon.instances.push(
    sampleInstance({ name: 'web1', tags: ['db', 'prod'] }),
    sampleInstance({ name: 'web2', status: 'ADMIN_down', adminState: 'down', running: null }),
  );
  daemon.operatingSystems.push(sampleOs());
  daemon.installLog = 'one\ntwo\n';
  daemon.jobs.push(
    sampleJob({ id: 1, status: 'success', endedAtMs: NOW_MS + 5000 }),
    sampleJob({ id: 2, status: 'running', summary: 'INSTANCE_STARTUP(web2)' }),
  );
}

async function follow(line: string, daemon: DaemonStandIn): Promise<string> {
  for (const list of [daemon.submitted, daemon.dryRuns, daemon.canceled, daemon.tokensReplaced])
    list.splice(0);
  daemon.jobs.splice(2);
  const words = (line.match(/'[^']*'|[^\s']+/g) ?? []).map((word) => word.replaceAll("'", ''));
  const { root } = daemon;
  const { status, stdout, stderr } = await runInProcess(words[0] ?? '', words.slice(1), { root });
  const sent = [
    ...daemon.submitted.map((opcode) => `> ${describeOpcode(opcode)}\n`),
    ...daemon.dryRuns.map((opcode) => `> dry run ${describeOpcode(opcode)}\n`),
    ...daemon.canceled.map((id) => `> cancel ${id}\n`),
    ...daemon.tokensReplaced.map((name) => `> replace the tokens of ${name}\n`),
  ];
  const printed = `${stdout}${stdout === '' || stdout.endsWith('\n') ? '' : '\n'}${stderr}`
    .replaceAll(root, '/ROOT')
    .replaceAll(process.cwd(), '/HERE');
  return `$ ${line}\n${sent.join('')}${printed}[${status}]\n\n`;
}

/** Returns the fields that differ from an opcode with a name only. */
function describeOpcode(opcode: Opcode): string {
  const { opcode: kind } = opcode;
  const name = 'name' in opcode ? opcode.name : undefined;
  const least = opcodeSchema.safeParse({ opcode: kind, name });
  const defaults = new Map(Object.entries(least.data ?? {}));
  const told = Object.entries(opcode).filter(
    ([key, value]) =>
      !['opcode', 'name'].includes(key) &&
      JSON.stringify(value) !== JSON.stringify(defaults.get(key)),
  );
  return [kind, name ?? '-', JSON.stringify(Object.fromEntries(told))].join(' ');
}
