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
      if (!isRenewed) assert.ok(kept.includes(told), `the text now:\n${told}`);
    });
  }
  if (isRenewed) await writeFile(FILE, seen);
  else assert.equal(seen, kept, basename(FILE));
});

const UUID = '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f';
const image = {
  ...{ name: 'debian/12', catalogue: 'built-in', aliases: ['bookworm'], title: 'Debian 12' },
  ...{ format: 'qcow2', user: 'debian', minDiskBytes: 2 ** 31, cloudInit: '22.4.2' },
  ...{ source: 'https://example.com/a.qcow2', checksum: null, checksums: null },
  ...{ verified: 'catalogue', isCached: false, isShadowed: false },
};
const ANSWERS = {
  'POST /v1/catalogues': null,
  'POST /v1/catalogues/update': null,
  'POST /v1/images/import': null,
  'POST /v1/images/remove': null,
  'DELETE /v1/nodes/node9': null,
  'GET /v1/cluster/renew-crypto': { renewals: 0, done: [] },
  'POST /v1/cluster/renew-crypto': { nodes: ['node1', 'node2'], skipped: ['node3'] },
  'POST /v1/relays/api/secret': {
    nodes: ['node1'],
    missing: [{ node: 'node2', reason: 'it does not respond' }],
  },
  'POST /v1/cluster/join-tokens': {
    ...{ token: 'gnt-TOKEN', expiresAtMs: NOW_MS, store: 'redis://127.0.0.1:6379' },
  },
  'GET /v1/networks': [
    {
      ...{ name: 'lan', uuid: UUID, network: '10.9.0.0/24', gateway: '10.9.0.1', macPrefix: null },
      ...{ reserved: ['10.9.0.9'], tags: ['blue'], size: 254, free: 252 },
      connections: { node1: { mode: 'nat' }, node2: { mode: 'bridged', link: 'br0' } },
      addresses: [{ ip: '10.9.0.5', instance: 'web1' }],
    },
    {
      ...{ name: 'empty', uuid: UUID, network: '10.8.0.0/24', gateway: null },
      ...{ macPrefix: 'aa:00:01', reserved: [], tags: [], size: 254, free: 254 },
      ...{ connections: {}, addresses: [] },
    },
  ],
  'GET /v1/profiles': [
    {
      ...{ name: 'web', osParameters: { color: 'red' }, instances: ['web1'] },
      osParametersPrivate: { license: '<redacted>' },
    },
  ],
  'GET /v1/bootenvs': [
    {
      ...{ name: 'debian-12', description: 'Debian', osName: 'debian-12', installs: true },
      ...{ isoFile: 'a.iso', isoUrl: 'http://example.com/a.iso', templates: ['preseed'] },
      ...{ requiredParams: ['color'], instances: ['web1'], document: { Name: 'debian-12' } },
    },
  ],
  'GET /v1/boot-templates': [{ id: 'preseed', contents: 'd-i x\n' }],
  'GET /v1/boot-params': [{ name: 'color', schema: { type: 'string' } }],
  'GET /v1/boot-archives': [
    { isoFile: 'a.iso', sha256: 'ab12', sizeBytes: 2 ** 30, bootEnvs: ['debian-12'] },
  ],
  'GET /v1/images': [
    image,
    {
      ...{ ...image, name: 'my', catalogue: 'imported', aliases: [], title: '', user: null },
      ...{ minDiskBytes: null, cloudInit: null, checksum: `sha256:${'0'.repeat(64)}` },
      ...{ verified: 'import', isCached: true, format: 'auto' },
    },
  ],
  'GET /v1/catalogues': [
    {
      ...{ name: 'built-in', source: 'built-in', images: 1, refused: 0, updatedAtMs: null },
    },
    {
      name: 'own',
      source: 'https://example.com/c.json',
      images: 3,
      refused: 1,
      updatedAtMs: NOW_MS,
    },
  ],
};

function fill(daemon: DaemonStandIn): void {
  daemon.instances.push(
    sampleInstance({ name: 'web1', tags: ['db', 'prod'] }),
    sampleInstance({ name: 'web2', status: 'ADMIN_down', adminState: 'down', running: null }),
  );
  daemon.operatingSystems.push(sampleOs());
  for (const [request, body] of Object.entries(ANSWERS)) daemon.answers.set(request, body);
  daemon.installLog = 'one\ntwo\n';
  daemon.jobs.push(
    sampleJob({ id: 1, status: 'success', endedAtMs: NOW_MS + 5000 }),
    sampleJob({ id: 2, status: 'running', summary: 'INSTANCE_STARTUP(web2)' }),
    sampleJob({
      ...{ id: 3, status: 'error', node: 'node1', waitsFor: [1], endedAtMs: NOW_MS + 1000 },
      error: {
        ...{ code: 'IMAGE_NOT_FOUND', message: 'no such image', hint: 'gnt-image list' },
        ...{ details: {}, logTail: ['last words'], stage: 'fetch-image', phase: 'execution' },
      },
      log: [
        { sequence: 1, atMs: NOW_MS + 100, message: 'it begins' },
        { sequence: 2, atMs: NOW_MS + 200, level: 'warn', message: 'it goes wrong' },
      ],
    }),
  );
}

async function follow(line: string, daemon: DaemonStandIn): Promise<string> {
  for (const list of [
    daemon.submitted,
    daemon.dryRuns,
    daemon.canceled,
    daemon.tokensReplaced,
    daemon.changing,
  ])
    list.splice(0);
  daemon.jobs.splice(3);
  const words = (line.match(/'[^']*'|[^\s']+/g) ?? []).map((word) => word.replaceAll("'", ''));
  const { root } = daemon;
  const { status, stdout, stderr } = await runInProcess(words[0] ?? '', words.slice(1), { root });
  const sent = [
    ...daemon.submitted.map((opcode) => `> ${describeOpcode(opcode)}\n`),
    ...daemon.dryRuns.map((opcode) => `> dry run ${describeOpcode(opcode)}\n`),
    ...daemon.canceled.map((id) => `> cancel ${id}\n`),
    ...daemon.tokensReplaced.map((name) => `> replace the tokens of ${name}\n`),
    ...daemon.changing.map((request) => `> ${request}\n`),
  ];
  const printed = `${stdout}${stdout === '' || stdout.endsWith('\n') ? '' : '\n'}${stderr}`;
  const told = `${sent.join('')}${printed}`
    .replaceAll(root, '/ROOT')
    .replaceAll(process.cwd(), '/HERE');
  return `$ ${line}\n${told}[${status}]\n\n`;
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
