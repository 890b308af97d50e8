import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLab, type Lab } from '../../../../scripts/demo/lab.ts';
import { askRapi, type Asking } from './ask-rapi.ts';

/** Ganeti's networks, seen by a client of the remote API. */
const PASSWORD = 'password';
let lab: Lab;
let port = 0;

before(async () => {
  lab = await createLab('gnt-rapi-nets');
  const etc = join(lab.paths.root, 'etc/gnt');
  await mkdir(etc, { recursive: true });
  const lines = Object.entries({ writer: 'write', alice: 'write,instance:a-*' }).map(
    ([name, options]) => {
      const digest = createHash('md5').update(`${name}:Ganeti Remote API:${PASSWORD}`);
      return `${name} {HA1}${digest.digest('hex')} ${options}\n`;
    },
  );
  await writeFile(join(etc, 'rapi-users'), lines.join(''), { mode: 0o600 });
  await lab.startNode('--rapi', '127.0.0.1:0');
  const log = await readFile(join(lab.paths.root, 'noded.log'), 'utf8');
  port = Number(/"port":(\d+),"event":"rapi\.ready"/.exec(log)?.[1]);
});

after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

const ask = (path: string, asking: Asking = {}) =>
  askRapi({ port, certificateFile: join(lab.paths.root, 'etc/gnt/rapi.pem') }, path, {
    ...{ user: 'writer', password: PASSWORD },
    ...asking,
  });

/** @returns the job's final status */
async function change(
  method: string,
  path: string,
  body?: object,
  user = 'writer',
): Promise<unknown> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const { status, body: id } = await ask(path, { method, user, ...sent });
  assert.equal(status, 200, JSON.stringify(id));
  for (;;) {
    const { body: job } = await ask(`/2/jobs/${Number(id)}`, { user });
    assert.ok(typeof job === 'object' && job !== null && 'status' in job);
    if (['success', 'error', 'canceled'].includes(String(job.status))) return job.status;
    await sleep(50);
  }
}

test('a network is made, seen, changed, tagged and removed in Ganeti’s words', async () => {
  const made = await change('POST', '/2/networks', {
    ...{ network_name: 'lan', network: '10.9.0.0/29', gateway: '10.9.0.1', network6: null },
    ...{ add_reserved_ips: ['10.9.0.2'], tags: ['blue'], conflicts_check: true },
  });
  assert.equal(made, 'success');
  assert.deepEqual((await ask('/2/networks')).body, [{ name: 'lan', uri: '/2/networks/lan' }]);
  assert.equal(await change('PUT', '/2/networks/lan/tags?tag=red'), 'success');
  assert.equal(await change('DELETE', '/2/networks/lan/tags?tag=blue'), 'success');
  assert.deepEqual((await ask('/2/networks/lan/tags')).body, ['red']);
  const modify = { add_reserved_ips: ['10.9.0.5'], mac_prefix: 'aa:00:09' };
  assert.equal(await change('PUT', '/2/networks/lan/modify', modify), 'success');
  const { body } = await ask('/2/networks/lan');
  assert.ok(typeof body === 'object' && body !== null && 'uuid' in body);
  const { uuid, ...told } = body;
  assert.match(String(uuid), /^[0-9a-f-]{36}$/);
  assert.deepEqual(told, {
    ...{ name: 'lan', network: '10.9.0.0/29', gateway: '10.9.0.1', mac_prefix: 'aa:00:09' },
    ...{ network6: null, gateway6: null, free_count: 3, reserved_count: 3, map: 'XXX..X.X' },
    ...{ external_reservations: '10.9.0.2, 10.9.0.5', group_list: [], inst_list: [] },
    tags: ['red'],
  });
  assert.deepEqual((await ask('/2/networks?bulk=1')).body, [body]);
  assert.equal(await change('DELETE', '/2/networks/lan'), 'success');
  assert.equal((await ask('/2/networks/lan')).status, 404);
});

test('what cannot be done is refused by name', async () => {
  const asked = async (method: string, path: string, body: object): Promise<string> => {
    const answer = await ask(path, { method, body: JSON.stringify(body) });
    return `${answer.status} ${JSON.stringify(answer.body)}`;
  };
  const six = { network_name: 'lan', network: '10.9.0.0/24', network6: 'fd00::/64' };
  assert.match(await asked('POST', '/2/networks', six), /^400 .*IPv4/);
  const vlan = { network_mode: 'openvswitch', network_link: 'br0' };
  assert.match(await asked('PUT', '/2/networks/lan/connect', vlan), /^400 .*bridged, nat/);
  const group = { group_name: 'rack1', network_mode: 'nat' };
  assert.match(await asked('PUT', '/2/networks/lan/connect', group), /^400 .*node_names/);
});

test('a user who is bound to instances changes no network', async () => {
  const body = { network_name: 'own', network: '10.8.0.0/24' };
  assert.equal(await change('POST', '/2/networks', body, 'alice'), 'error');
  assert.deepEqual((await ask('/2/networks')).body, []);
});
