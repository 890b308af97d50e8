import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { askSocket } from '../../../lab/ask-socket.ts';
import { createRapiLab, digestOf, type RapiLab } from './rapi-lab.ts';

/**
 * The remote API of a real node. Ganeti's own client installs an instance with scripts on the host,
 * so that no QEMU process runs.
 */
const PASSWORD = 'pass: word #1';
const HIDDEN = ['PRIVATE-', 'SECRET-', PASSWORD];

type Dict = Record<string, unknown>;
interface Job extends Dict {
  readonly status: string;
  readonly lines: readonly (readonly [string, string])[];
  readonly opresult: readonly unknown[];
  readonly ops: readonly Dict[];
}

let rapi: RapiLab;
let answers: Dict;
const ask: RapiLab['ask'] = (path, asking) => rapi.ask(path, asking);

before(async () => {
  rapi = await createRapiLab('gnt-rapi', PASSWORD, ['writer write', 'reader']);
  await rapi.addOs('rapi-os', [
    'echo "greeting: $OSP_GREETING"',
    'case "$OSP_LICENCE/$OSP_ROOT_PASSWORD" in PRIVATE-*/SECRET-*) ;; *) exit 1 ;; esac',
    'printf "%s" "$OSP_GREETING" | dd of="$DISK_0_PATH" conv=notrunc status=none',
  ]);
  await rapi.addOs('rapi-slow', ['exec sleep 600']);
  const { stdout } = await run(
    '/usr/bin/python3',
    [join(import.meta.dirname, 'drive.py'), String(rapi.port), rapi.certificateFile],
    { input: PASSWORD },
  );
  answers = JSON.parse(stdout) as Dict;
});

after(async () => {
  const { lab } = rapi;
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

function job(name: string): Job {
  return answers[name] as Job;
}

test("Ganeti's client gets what a cluster is made of", () => {
  assert.equal(answers['version'], 2);
  assert.deepEqual(answers['features'], [
    'instance-create-reqv1',
    'instance-reinstall-reqv1',
    'node-migrate-reqv1',
    'node-evac-res1',
  ]);
  const info = answers['info'] as Dict;
  assert.equal(info['master'], 'node1.example.com');
  assert.deepEqual(info['enabled_hypervisors'], ['kvm']);
  assert.deepEqual(answers['os'], ['rapi-os', 'rapi-slow']);
  assert.deepEqual(answers['nodes'], ['node1.example.com']);
  const node = answers['node'] as Dict;
  assert.equal(node['name'], 'node1.example.com');
  assert.ok(Number(node['mtotal']) > Number(node['mfree']));
  assert.equal((answers['bulk nodes'] as Dict[]).length, 1);
});

test('an instance is installed through it, with parameters of each visibility', async () => {
  const created = job('create');
  assert.equal(created.status, 'success', JSON.stringify(created));
  assert.ok(created.lines.some(([kind, line]) => kind === 'message' && line.includes('channel')));
  assert.deepEqual(created['summary'], ['INSTANCE_CREATE(web1.example.com)']);
  const [op] = created.ops;
  assert.equal(op?.['OP_ID'], 'OP_INSTANCE_CREATE');
  assert.deepEqual(op?.['osparams'], { greeting: 'good morning' });
  assert.deepEqual(op?.['osparams_private'], { licence: '<redacted>' });
  assert.deepEqual(op?.['osparams_secret'], { root_password: '<redacted>' });
  const instance = answers['instance'] as Dict;
  assert.equal(instance['status'], 'ADMIN_down');
  assert.deepEqual(instance['disk.sizes'], [16]);
  assert.deepEqual(instance['tags'], ['blue']);
  assert.deepEqual(instance['custom_osparams'], { greeting: 'good morning' });
  const { memory, vcpus } = instance['beparams'] as Dict;
  assert.deepEqual([memory, vcpus], [256, 2]);
  assert.deepEqual(answers['instances'], ['web1.example.com']);
  assert.deepEqual(answers['bulk instances'], [instance]);
  const [queried] = job('instance info').opresult as [Dict];
  const { os_instance: osInstance, run_state: runState } = queried['web1.example.com'] as Dict;
  assert.deepEqual([osInstance, runState], [{ greeting: 'good morning' }, 'down']);
});

test('the scripts saw all three kinds, and private and secret values are in no answer, log or file', async () => {
  assert.equal(job('reinstall').status, 'success');
  const transcript = JSON.stringify(answers);
  const log = await readFile(join(rapi.lab.paths.root, 'noded.log'), 'utf8');
  for (const hidden of HIDDEN) {
    assert.ok(!transcript.includes(hidden), `${hidden} is in an answer`);
    assert.ok(!log.includes(hidden), `${hidden} is in the log`);
  }
  const store = await readFile(rapi.lab.paths.storeFile, 'latin1');
  assert.ok(!store.includes('SECRET-'), 'a secret is in the store');
  assert.match(log, /"user":"writer".*"method":"POST","path":"\/2\/instances"/);
});

test('what a job would be refused with, it ends with, as Ganeti encodes it', () => {
  assert.equal(job('dry run').status, 'success');
  assert.deepEqual(answers['after dry run'], []);
  assert.equal(job('startup dry run').status, 'success');
  const [again] = job('create again').opresult as [[string, [string, string]]];
  assert.equal(again[0], 'OpPrereqError');
  assert.equal(again[1][1], 'already_exists');
  const [missing] = job('reinstall without secret').opresult as [[string, [string, string]]];
  assert.match(missing[1][0], /root_password/);
  const [reboot] = job('reboot').opresult as [[string, [string, string]]];
  assert.equal(reboot[1][1], 'wrong_state');
});

test('an instance is modified, tagged, stopped, renamed and removed', () => {
  for (const name of ['modify', 'add tags', 'delete tags', 'shutdown', 'rename']) {
    assert.equal(job(name).status, 'success', JSON.stringify(job(name).opresult));
  }
  assert.deepEqual(answers['tags'], ['green', 'red']);
  assert.deepEqual(answers['cluster tags'], ['b']);
  for (const each of answers['delete'] as Job[])
    assert.equal(each.status, 'success', JSON.stringify(each));
  assert.deepEqual(answers['after delete'], []);
  assert.match(JSON.stringify(answers['console']), /503 .*not running/);
});

test('a running job is cancelled, an ended one is not', () => {
  assert.equal((answers['cancel'] as [boolean, string])[0], true);
  assert.equal(job('canceled').status, 'canceled');
  assert.equal((answers['cancel again'] as [boolean, string])[0], false);
  const ids = answers['jobs'] as number[];
  assert.deepEqual(
    (answers['bulk jobs'] as Dict[]).map(({ id }) => id),
    ids,
  );
});

test('queries select fields and rows', () => {
  const query = answers['query'] as { fields: Dict[]; data: unknown };
  assert.deepEqual(
    query.fields.map(({ name, kind }) => [name, kind]),
    [
      ['name', 'text'],
      ['oper_ram', 'unit'],
      ['nonsense', 'unknown'],
    ],
  );
  assert.deepEqual(query.data, [
    [
      [0, 'web2.example.com'],
      [3, null],
      [1, null],
    ],
  ]);
  assert.deepEqual((answers['query none'] as Dict)['data'], []);
  assert.deepEqual((answers['query nodes'] as Dict)['data'], [
    [
      [0, 'node1.example.com'],
      [0, 'M'],
    ],
  ]);
  assert.ok(((answers['query jobs'] as Dict)['data'] as unknown[]).length >= 2);
});

test('failures reach the client in its own shape', () => {
  const codes = [
    ...['stranger', 'reader writes', 'reader submits', 'reader waits'],
    ...['no instance', 'no job', 'import', 'refused'],
  ].map((name) => (answers[name] as Dict)['code']);
  assert.deepEqual(codes, [401, 403, 403, 403, 404, 404, 400, 501]);
  assert.match(JSON.stringify(answers['no instance']), /404 Not Found: .*web1\.example\.com/);
  assert.match(JSON.stringify(answers['refused']), /a start of the instance activates its disks/);
});

test('without a password there is the version and nothing else', async () => {
  assert.deepEqual((await ask('/version')).body, 2);
  assert.deepEqual((await ask('/')).body, null);
  for (const path of ['/2', '/2/features', '/2/instances', '/2/nonsense', '/nonsense']) {
    const answer = await ask(path);
    assert.equal(answer.status, 401, path);
    assert.equal(answer.headers['www-authenticate'], 'Basic realm="Ganeti Remote API"');
    assert.deepEqual(Object.keys(answer.body as Dict), ['code', 'message', 'explain']);
  }
});

test('a request that is given up in the middle is nothing to report', async () => {
  const socket = connect({ host: '127.0.0.1', port: rapi.port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf');
  socket.destroySoon();
  await once(socket, 'close');
  assert.equal((await ask('/version')).status, 200);
  const log = await readFile(join(rapi.lab.paths.root, 'noded.log'), 'utf8');
  assert.doesNotMatch(log, /rapi\.unexpected|"level":"error"/);
});

test('what is malformed is refused before it is a job', async () => {
  const user = 'writer';
  const jobs = ((await ask('/2/jobs', { user })).body as unknown[]).length;
  const post = { user, method: 'POST', body: '{}' };
  const path = '/2/instances';
  assert.equal((await ask(path, post)).status, 400);
  assert.equal((await ask(path, { ...post, type: 'text/plain' })).status, 415);
  assert.equal((await ask(path, { ...post, body: '{"a": ' })).status, 400);
  const large = { ...post, body: 'x'.repeat(31 * 1024 * 1024) };
  assert.equal((await ask(path, large)).status, 413);
  assert.equal((await ask(path, { ...post, method: 'PUT' })).status, 501);
  assert.equal((await ask('/2/nothing', { user })).status, 404);
  assert.equal(
    (await ask('/2/jobs/1/wait', { user, body: '{"fields":["toString"]}' })).status,
    400,
  );
  const query = {
    user: 'reader',
    method: 'PUT',
    body: '{"fields":["name"],"qfilter":["=~","name","(a+)+$"]}',
  };
  assert.equal((await ask('/2/query/instance', query)).status, 400);
  const unknown = { mode: 'create', name: 'x', disk_template: 'file', disks: [], nics: [] };
  const refused = await ask(path, {
    ...post,
    body: JSON.stringify({ __version__: 1, ...unknown, nonsense: 'VALUE' }),
  });
  assert.match(JSON.stringify(refused.body), /nonsense/);
  assert.doesNotMatch(JSON.stringify(refused.body), /VALUE/);
  assert.equal(((await ask('/2/jobs', { user })).body as unknown[]).length, jobs);
});

test('a changed users file counts at once, and a plain password never', async () => {
  const [writer, late] = ['writer', 'late'].map((login) => `${login} ${digestOf(login, PASSWORD)}`);
  const users = [`${writer} write`, `plain ${PASSWORD} write`, `${late} read,write`];
  await writeFile(rapi.usersFile, `${users.join('\n')}\n`, { mode: 0o600 });
  assert.equal((await ask('/2/instances', { user: 'late' })).status, 200);
  assert.equal((await ask('/2/instances', { user: 'reader' })).status, 401);
  assert.equal((await ask('/2/instances', { user: 'plain' })).status, 401);
});

test('guesses of passwords make their address wait, and no other address', async () => {
  const guess = { user: 'writer', password: 'guess', from: '127.0.0.9' };
  for (let count = 0; count < 10; count++) {
    assert.equal((await ask('/2/instances', guess)).status, 401);
  }
  const answer = await ask('/2/instances', { ...guess, password: PASSWORD });
  assert.equal(answer.status, 429);
  assert.ok(Number(answer.headers['retry-after']) > 0);
  const log = await readFile(join(rapi.lab.paths.root, 'noded.log'), 'utf8');
  assert.equal(log.match(/"address":"127\.0\.0\.9","event":"rapi\.login-failed"/g)?.length, 10);
  assert.equal((await ask('/2/instances', { user: 'writer' })).status, 200);
});

test('requests are counted by method and status', async () => {
  const { body } = await askSocket(rapi.lab.paths.nodedSocket, '/metrics');
  for (const series of ['method="POST",status="200"', 'method="GET",status="401"']) {
    assert.match(body, new RegExp(`^gnt_rapi_requests_total\\{${series}\\} \\d+$`, 'm'));
  }
});

test('the certificate was made for the node, and only root can read its key', async () => {
  assert.equal((await stat(rapi.certificateFile)).mode & 0o777, 0o600);
  const { stdout } = await run('openssl', [
    ...['x509', '-in', rapi.certificateFile, '-noout', '-subject', '-ext', 'subjectAltName'],
  ]);
  assert.match(stdout, /CN = node1\.example\.com/);
  assert.match(stdout, /DNS:node1\.example\.com/);
  assert.deepEqual((await readdir(join(rapi.lab.paths.root, 'etc/gnt'))).toSorted(), [
    'rapi-users',
    'rapi.pem',
  ]);
});
