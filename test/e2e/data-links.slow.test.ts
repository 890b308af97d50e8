import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { doctorReport, nodeInfo, type DoctorFinding } from '#shared/contract/api.ts';
import { run } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import type { JoinedHost } from '../bench/support/joined-hosts.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { captureLink, sendPlain } from '../lab/capture-link.ts';
import { ask, infoOf, submit, succeed } from './support/ask-nodes.ts';
import { type LinkedNodes, linkNodes } from './support/linked-nodes.ts';

/**
 * Two nodes in network namespaces, which reach each other over an IPv6 link and Redis over its
 * socket. The real programs run; no QEMU process does.
 */
const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NAME = 'moved.example.com';
const PORT = 5082;
const DISK_BYTES = 48 * MIB;
const CANARY = `canary-${randomBytes(12).toString('hex')}`;
let nodes: LinkedNodes;
let hosts: LinkedNodes['hosts'];
let one: Lab;
let two: Lab;

before(async () => {
  nodes = await linkNodes();
  hosts = nodes.hosts;
  [one, two] = nodes.labs;
  const [left, right] = hosts;
  // The default port, and another one.
  await nodes.start(
    ['--node', ONE, '--data-address', `[${left.addressV6}]`],
    ['--node', TWO, '--data-address', `[${right.addressV6}]:6000`],
  );
});

after(() => nodes.end());

const findingsOf = async (lab: Lab): Promise<readonly DoctorFinding[]> =>
  (await ask(lab, '/v1/doctor', doctorReport)).findings.filter(
    ({ check }) => check === 'data-links',
  );

async function linkOf(lab: Lab, node: string) {
  const { dataLinks } = await ask(lab, '/v1/node', nodeInfo);
  return dataLinks?.links.find((link) => link.node === node);
}

async function logged(lab: Lab, event: string): Promise<readonly string[]> {
  const log = await readFile(join(lab.paths.root, 'noded.log'), 'utf8');
  return log.split('\n').filter((line) => line.includes(event));
}

const metricsOf = async (lab: Lab): Promise<string> =>
  (await askSocket(lab.paths.nodedSocket, '/metrics')).body;

/** Blocks TCP to a port in a host, or `none`. */
async function block(host: JoinedHost, verdict: 'drop' | 'reject' | 'none', port: number) {
  const inside = [`--net=/run/netns/${host.namespace}`, 'nft'];
  await run('nsenter', [...inside, 'delete table inet blocked']).catch(() => undefined);
  if (verdict === 'none') return;
  const how = verdict === 'drop' ? 'drop' : 'reject with tcp reset';
  await run('nsenter', [
    ...inside,
    `add table inet blocked; add chain inet blocked input { type filter hook input priority 0; };
     add rule inet blocked input tcp dport ${port} ${how}`,
  ]);
}

test('an IPv6 address is announced, shown and used', async () => {
  const [left, right] = hosts;
  const findings = await findingsOf(one);
  assert.deepEqual(
    findings.map(({ level, message }) => [level, message]),
    [
      ['ok', `this node accepts data links at [${left.addressV6}]:${PORT}`],
      ['ok', `direct TLS 1.3 to ${TWO}`],
    ],
  );
  const shown = await succeed(one, 'gnt-node', 'info');
  assert.ok(shown.includes(`Data address: [${left.addressV6}]:${PORT}`), shown);
  assert.match(shown, new RegExp(`Data link to ${TWO}: direct, TLS 1\\.3`));
  assert.deepEqual(await linkOf(one, TWO), {
    ...{ node: TWO, path: 'direct', reason: null },
    address: { host: right.addressV6, port: 6000 },
  });
});

test('the wire carries nothing of a disk that moves', async () => {
  const [left, right] = hosts;
  const values = [CANARY, CANARY.slice(0, 20)];
  const control = await captureLink(left, values, () => sendPlain(left, right, CANARY));
  assert.ok(
    control.found.every((count) => count > 10),
    JSON.stringify(control),
  );
  const { error } = await submit(one, {
    ...{ opcode: 'INSTANCE_CREATE', name: NAME, node: ONE, install: false, start: false },
    ...{ nics: [], osType: 'both', disks: [{ sizeBytes: DISK_BYTES }] },
    beparams: { memoryMiB: 64 },
  });
  assert.equal(error, null);
  const { uuid } = await infoOf(one, NAME);
  const content = Buffer.alloc(DISK_BYTES, CANARY);
  await using disk = await open(join(one.paths.disksDir, uuid, 'disk0.raw'), 'r+');
  await disk.write(content, 0, content.length, 0);
  const moved = await captureLink(left, values, async () => {
    const { error: failure } = await submit(one, {
      opcode: 'INSTANCE_MOVE',
      name: NAME,
      node: TWO,
    });
    assert.equal(failure, null);
  });
  assert.deepEqual(moved.found, [0, 0]);
  // The disk did cross the wire, and the capture saw most of it.
  assert.ok(moved.bytes > DISK_BYTES / 2, JSON.stringify(moved));
  const arrived = await readFile(join(two.paths.disksDir, uuid, 'disk0.raw'));
  assert.ok(arrived.equals(content));
});

test('packets that are dropped or refused are reported by name with the port, until they pass', async () => {
  const [, right] = hosts;
  for (const verdict of ['drop', 'reject'] as const) {
    assert.equal((await linkOf(one, TWO))?.path, 'direct');
    const before = (await logged(one, 'data-link.unavailable')).length;
    // Also on the connection that is open.
    await block(right, verdict, 6000);
    // The doctor of the other node is asked through the store.
    const report = await one.run('gnt-node', ['doctor']);
    const at = `[${right.addressV6}]:6000`;
    assert.match(report.stdout, new RegExp(`data for ${TWO} goes through the store: `));
    assert.ok(report.stdout.includes(`firewalls allow TCP from this node to ${at}`), report.stdout);
    const json = JSON.parse((await one.run('gnt-node', ['doctor', '--json'])).stdout) as unknown;
    const warning = doctorReport
      .parse(json)
      .findings.find(({ check, level }) => check === 'data-links' && level === 'warning');
    assert.ok(warning?.hint?.includes(at), JSON.stringify(warning));
    const link = await linkOf(one, TWO);
    assert.equal(link?.path, 'store');
    assert.match(
      await succeed(one, 'gnt-node', 'info'),
      new RegExp(`Data link to ${TWO}: through the store: `),
    );
    // Requests still work.
    assert.equal((await infoOf(one, NAME)).primaryNode, TWO);
    const events = await logged(one, 'data-link.unavailable');
    assert.ok(events.length > before);
    assert.ok(events.at(-1)?.includes('Allow TCP port 6000'), events.join('\n'));
    assert.match(await metricsOf(one), /^gnt_data_links\{path="store"\} 1$/m);
    await block(right, 'none', 6000);
    assert.equal((await findingsOf(one)).at(-1)?.level, 'ok');
    assert.match(await metricsOf(one), /^gnt_data_links\{path="direct"\} 1$/m);
  }
});
