import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLab, type Lab } from '../../../../scripts/demo/lab.ts';
import { askRapi, type Asking } from './ask-rapi.ts';

/** The access of remote users to a real node: files, instances and jobs of others. */
const PASSWORD = 'password';
type Dict = Record<string, unknown>;

let lab: Lab;
let port = 0;
let images = '';

before(async () => {
  lab = await createLab('gnt-rights');
  const etc = join(lab.paths.root, 'etc/gnt');
  images = join(lab.paths.root, 'images');
  await mkdir(etc, { recursive: true });
  await mkdir(images);
  await writeFile(join(images, 'a.raw'), Buffer.alloc(4096, 1));
  await writeFile(join(lab.paths.root, 'secret'), Buffer.alloc(4096, 1), { mode: 0o600 });
  await symlink(join(lab.paths.root, 'secret'), join(images, 'link.raw'));
  await keepArchive(join(images, 'd.iso'));
  const users = {
    writer: 'write',
    alice: 'write,instance:a-*',
    bob: 'write,tag:team-b',
    carol: 'write,instance:c-*,max-instances:1,max-memory:600M,max-disk:40M',
  };
  const lines = Object.entries(users).map(([name, options]) => {
    const digest = createHash('md5').update(`${name}:Ganeti Remote API:${PASSWORD}`).digest('hex');
    return `${name} {HA1}${digest} ${options}\n`;
  });
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

/**
 * Keeps an archive and, under another name, its unpacked form that an appliance made on this node.
 */
async function keepArchive(path: string): Promise<void> {
  const kept = lab.paths.bootArchivesDir;
  const sha256 = createHash('sha256').update('kernel').digest('hex');
  await mkdir(kept, { recursive: true });
  await writeFile(path, 'kernel');
  await writeFile(join(kept, `${sha256}.data`), 'kernel');
  await writeFile(join(kept, `${sha256}.index`), '0 6 linux\n');
  await writeFile(join(kept, 'names.json'), JSON.stringify({ 'before.iso': sha256 }));
}

const ask = (path: string, asking: Asking = {}) =>
  askRapi({ port, certificateFile: join(lab.paths.root, 'etc/gnt/rapi.pem') }, path, {
    ...{ user: 'writer', password: PASSWORD },
    ...asking,
  });

/**
 * Requests a new instance.
 * @returns status of the answer and result of its job
 */
async function create(name: string, given: Dict, user = 'writer') {
  const body = { __version__: 1, mode: 'create', instance_name: name, disk_template: 'file' };
  const answer = await ask('/2/instances', {
    ...{ user, method: 'POST' },
    body: JSON.stringify({ ...body, disks: [{ size: 16 }], nics: [], start: false, ...given }),
  });
  if (answer.status !== 200) return { status: answer.status, job: JSON.stringify(answer.body) };
  return { status: 200, job: JSON.stringify(await ended(Number(answer.body))) };
}

async function ended(id: number): Promise<Dict> {
  for (;;) {
    const job = (await ask(`/2/jobs/${id}`)).body as Dict;
    if (job['end_ts'] !== null) return job;
    await sleep(50);
  }
}

test('a file of the node is no image, package, medium or kernel of a remote user', async () => {
  const secret = join(lab.paths.root, 'secret');
  const medium = { install_parameters: { kernel_path: '/etc/passwd' } };
  for (const given of [
    { os_image: secret },
    { os_image: lab.paths.clusterKeyFile },
    { os_image: '/etc/shadow' },
    { osparams: { 'os-image': '/etc/shadow' } },
    { os_image: join(images, 'a.raw') },
    { os_image: 'https://example.com/a.raw', personalization_package: '/root/site.tgz' },
    { no_install: true, hvparams: { cdrom_image_path: '/etc/passwd' } },
    medium,
    { os_image: 'http://127.0.0.1:8080/a.raw' },
    { os_image: 'https://example.com/a.raw', personalization_package: 'http://10.0.0.1/a.tgz' },
    { no_install: true, hvparams: { cdrom_image_path: 'http://localhost/a.iso' } },
  ]) {
    const { status, job } = await create('web1', given);
    assert.equal(status, 403, `${JSON.stringify(given)}: ${job}`);
  }
  assert.deepEqual((await ask('/2/jobs')).body, [], 'no job was made of it');
});

test('below a folder that the operator names, and by no link out of it, a file is an image', async () => {
  const named = await lab.run('gnt-cluster', ['modify', '--remote-folders', images]);
  assert.equal(named.status, 0, named.stderr);
  const asDryRun = { no_install: true };
  const good = await create('web1', { os_image: join(images, 'a.raw'), ...asDryRun });
  assert.match(good.job, /"status":"success"/);
  const byLink = await create('web2', { os_image: join(images, 'link.raw'), ...asDryRun });
  assert.match(byLink.job, /OpPrereqError.*link\.raw/);
  const up = await create('web2', { os_image: `${images}/../secret`, ...asDryRun });
  assert.equal(up.status, 403);
  const marked = await create('web2', { os_image: `${images}/./a.raw`, ...asDryRun });
  assert.equal(marked.status, 403);
  const taken = await lab.run('gnt-cluster', ['modify', '--remote-folders', 'none']);
  assert.equal(taken.status, 0, taken.stderr);
  const path = '/2/instances/web1/reinstall';
  const again = await ask(path, { method: 'POST', body: '{"start":false}' });
  assert.match(
    JSON.stringify(await ended(Number(again.body))),
    /not below a folder whose files the remote API/,
  );
});

test('to a bound user the instances and jobs of others do not exist', async () => {
  const plain = { no_install: true, os_image: 'https://example.com/a.raw' };
  for (const [name, given, user, end] of [
    ['a-shop', plain, 'alice', /"status":"success"/],
    ['shop', plain, 'alice', /is not allowed to do this/],
    ['b-shop', { ...plain, tags: ['team-b'] }, 'bob', /"status":"success"/],
    ['b-other', plain, 'bob', /is not allowed to do this/],
  ] as const)
    assert.match((await create(name, given, user)).job, end, name);
  const bulk = async (path: string, user: string): Promise<string> =>
    JSON.stringify((await ask(path, { user })).body);
  for (const path of [
    ...['/2/instances', '/2/instances?bulk=1', '/2/jobs?bulk=1', '/2/nodes?bulk=1'],
    ...[
      '/2/query/instance?fields=name',
      '/2/query/job?fields=ops',
      '/2/query/node?fields=pinst_list',
    ],
  ]) {
    const seen = await bulk(path, 'alice');
    assert.ok(seen.includes('a-shop') && !seen.includes('b-shop') && !seen.includes('web1'), seen);
    const all = await bulk(path, 'writer');
    assert.ok(all.includes('a-shop') && all.includes('b-shop'), all);
  }
  for (const path of ['/2/nodes?bulk=1', '/2/query/node?fields=mfree,dfree,ctotal']) {
    assert.doesNotMatch(await bulk(path, 'alice'), /"(mfree|dfree|ctotal)":\d|\[0,\d/, path);
    assert.match(await bulk(path, 'writer'), /"mfree":\d|\[0,\d/, path);
  }
  assert.ok(!(await bulk('/2/info', 'alice')).includes(lab.paths.root));
  assert.equal((await ask('/2/instances/b-shop', { user: 'alice' })).status, 404);
  const shutdown = await ask('/2/instances/b-shop', { user: 'alice', method: 'DELETE' });
  assert.match(JSON.stringify(await ended(Number(shutdown.body))), /unknown_entity/);
  assert.equal((await ask('/2/instances/b-shop')).status, 200, 'it is still there');
  const [{ id }] = (await ask('/2/jobs')).body as [{ id: number }];
  assert.equal((await ask(`/2/jobs/${id}`, { user: 'alice' })).status, 404);
  assert.equal((await ask(`/2/jobs/${id}`, { user: 'alice', method: 'DELETE' })).status, 404);
});

test('a body of a hundred thousand values is refused before one of them is made', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  for (const body of [`{"os":${deep}}`, `{"os":[${'{},'.repeat(100_000)}{}]}`]) {
    const answer = await ask('/2/instances', { user: 'alice', method: 'POST', body });
    assert.equal(answer.status, 413, JSON.stringify(answer.body));
    assert.match(JSON.stringify(answer.body), /more than 50000 values/);
  }
});

test('a name that was another’s does not bring its jobs along, by a new instance or by renaming', async () => {
  const plain = { no_install: true, os_image: 'https://example.com/a.raw' };
  const submit = async (user: string, method: string, path: string, body?: object) => {
    const answer = await ask(path, { user, method, body: body && JSON.stringify(body) });
    return JSON.stringify(await ended(Number(answer.body)));
  };
  const asked = { osparams: { dbhost: 'of-the-former' } };
  for (const name of ['former1', 'former2']) {
    assert.match((await create(name, { ...plain, ...asked })).job, /"status":"success"/);
    const removed = await submit('writer', 'DELETE', `/2/instances/${name}`);
    assert.match(removed, /"status":"success"/);
  }
  const tags = ['team-b'];
  for (const name of ['former1', 'b-own'])
    assert.match((await create(name, { ...plain, tags }, 'bob')).job, /"status":"success"/);
  const rename = { new_name: 'former2', ip_check: false, name_check: false };
  const renamed = await submit('bob', 'PUT', '/2/instances/b-own/rename', rename);
  assert.match(renamed, /"status":"success"/);
  const info = await submit('writer', 'GET', '/2/instances/former2/info');
  assert.match(info, /"status":"success"/);
  const all = (await ask('/2/jobs?bulk=1', { user: 'bob' })).body as readonly Dict[];
  const seen = JSON.stringify(all);
  assert.ok(!seen.includes('of-the-former') && !seen.includes('INSTANCE_REMOVE(former'), seen);
  assert.match(seen, /INSTANCE_QUERY_DATA\(former2/, 'what others do with it now is seen');
});

test('BootEnvs and profiles are made, read and removed by users that are bound to nothing', async () => {
  const submit = async (method: string, path: string, body?: object, user = 'writer') => {
    const answer = await ask(path, { user, method, body: body && JSON.stringify(body) });
    if (answer.status !== 200) return JSON.stringify(answer.body);
    return JSON.stringify(await ended(Number(answer.body)));
  };
  const Templates = [
    { Name: 'ipxe', Contents: '#!ipxe TEMPLATE', Path: '{{.Machine.Address}}.ipxe' },
  ];
  // A document from a dr-provision without architectures.
  const document = {
    ...{ Name: 'rescue', OS: { Name: 'debian-12' }, Kernel: 'linux', Templates },
    OnlyUnknown: true,
  };
  const content = { bootenvs: [document], templates: [], params: [] };
  assert.match(await submit('POST', '/2/bootenvs', content), /"status":"success"/);
  const wrong = { bootenvs: [{ ...document, Kernel: '../linux' }] };
  assert.match(await submit('POST', '/2/bootenvs', wrong), /"code":400/);
  const given = { osparams: { color: 'PUBLIC' }, osparams_private: { key: 'PRIVATE' } };
  const made = await submit('PUT', '/2/profiles/site', given);
  assert.match(made, /"status":"success"/);
  assert.ok(!made.includes('PRIVATE'), made);
  const instance = { no_install: true, os_image: 'https://example.com/a.raw', bootenv: 'rescue' };
  const communication = { instance_communication: true };
  const named = await create('web9', { ...instance, ...communication, profiles: ['site'] });
  assert.match(named.job, /BOOTENV_NO_SOURCE|nothing to boot from/, named.job);

  assert.deepEqual((await ask('/2/bootenvs')).body, [{ id: 'rescue', uri: '/2/bootenvs/rescue' }]);
  const amd64 = (await ask('/2/bootenvs/rescue')).body as {
    document: { OS: object; LeftOut: string[] };
  };
  assert.match(JSON.stringify(amd64.document.OS), /"Kernel":"linux"/);
  assert.match(amd64.document.LeftOut.join(), /^OnlyUnknown: /);
  assert.deepEqual((await ask('/2/profiles/site')).body, {
    ...{ name: 'site', osParameters: { color: 'PUBLIC' }, instances: [] },
    osParametersPrivate: { key: '<redacted>' },
  });
  assert.equal((await ask('/2/profiles/none')).status, 404);

  for (const path of ['/2/bootenvs?bulk=1', '/2/profiles?bulk=1', '/2/bootenvs/rescue']) {
    const seen = JSON.stringify((await ask(path, { user: 'alice' })).body);
    assert.match(seen, /rescue|site/);
    assert.doesNotMatch(seen, /TEMPLATE|PUBLIC|key|OnlyUnknown/, path);
  }
  for (const [method, path, body] of [
    ['POST', '/2/bootenvs', content],
    ['POST', '/2/bootenvs/rescue/uploadiso', undefined],
    ['DELETE', '/2/bootenvs/rescue', undefined],
    ['PUT', '/2/profiles/site', given],
    ['DELETE', '/2/profiles/site', undefined],
  ] as const)
    assert.match(await submit(method, path, body, 'alice'), /is not allowed to do this/, path);
  const profiled = await create('a-profiled', { no_install: true, profiles: ['site'] }, 'alice');
  assert.match(profiled.job, /is not allowed to do this.*profiles/);

  const upload = (source?: string): Promise<string> =>
    submit('POST', '/2/bootenvs/rescue/uploadiso', source === undefined ? undefined : { source });
  assert.match(await upload(), /BOOTENV_NO_SOURCE|names no IsoFile/);
  assert.match(await upload('http://127.0.0.1/d.iso'), /--remote-hosts/);
  assert.match(await upload('/etc/shadow'), /--remote-folders/);

  const unset = { osparams: { color: null } };
  assert.match(await submit('PUT', '/2/profiles/site', unset), /"status":"success"/);
  const left = (await ask('/2/profiles/site')).body as { osParameters: object };
  assert.deepEqual(left.osParameters, {});
  for (const path of ['/2/profiles/site', '/2/bootenvs/rescue']) {
    assert.match(await submit('DELETE', path), /"status":"success"/);
    assert.equal((await ask(path)).status, 404);
  }
});

test('an archive in a folder that the operator names is uploaded, and a BootEnv boots from it', async () => {
  const post = async (path: string, body: object) => {
    const answer = await ask(path, { method: 'POST', body: JSON.stringify(body) });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return JSON.stringify(await ended(Number(answer.body)));
  };
  const amd64 = { IsoFile: 'd.iso', Kernel: 'linux' };
  const Templates = [
    { Name: 'ipxe', ID: 'default-ipxe.tmpl', Path: '{{.Machine.MacAddr "ipxe"}}.ipxe' },
  ];
  const OS = { Name: 'debian-12', SupportedArchitectures: { amd64 } };
  const made = await post('/2/bootenvs', { bootenvs: [{ Name: 'live', OS, Templates }] });
  assert.match(made, /"status":"success"/);
  const instance = { no_install: true, instance_communication: true, bootenv: 'live' };
  const os_image = 'https://example.com/a.raw';
  const early = await create('web10', { ...instance, os_image });
  assert.match(early.job, /BOOTENV_NO_SOURCE|nothing to boot from/);
  const named = await lab.run('gnt-cluster', ['modify', '--remote-folders', images]);
  assert.equal(named.status, 0, named.stderr);
  const uploaded = await post('/2/bootenvs/live/uploadiso', { source: join(images, 'd.iso') });
  assert.match(uploaded, /"status":"success"/);
  assert.match(uploaded, /"isoFile":"d\.iso"/);
  const booting = await create('web10', { ...instance, os_image });
  assert.match(booting.job, /"status":"success"/, booting.job);
});

test('more memory or vcpus than the node can run are refused to every user', async () => {
  const plain = { no_install: true, os_image: 'https://example.com/a.raw' };
  for (const [beparams, reason] of [
    [{ memory: 16_777_216 }, /memory=16777216M is more than this node can run/],
    [{ vcpus: 255 }, /vcpus=255 is more than this node can run/],
  ] as const) {
    assert.match((await create('large', { ...plain, beparams })).job, reason);
    assert.equal((await ask('/2/instances/large')).status, 404);
  }
});

test('of two instances that a user creates at once, the quota allows one, and nothing else grows', async () => {
  const plain = { no_install: true, os_image: 'https://example.com/a.raw' };
  const both = await Promise.all(
    ['c-1', 'c-2'].map(async (name) => ({ name, ...(await create(name, plain, 'carol')) })),
  );
  const made = both.filter(({ job }) => job.includes('"status":"success"'));
  const [refused] = both.filter(({ job }) => job.includes('would exceed'));
  assert.equal(made.length, 1, JSON.stringify(both));
  assert.match(refused?.job ?? '', /would exceed max-instances: 2 of 1/);
  assert.equal((await ask(`/2/instances/${refused?.name}`)).status, 404);
  const name = made[0]?.name ?? '';
  const change = async (path: string, given: Dict, method: 'PUT' | 'POST' = 'PUT') => {
    const body = JSON.stringify(given);
    const answer = await ask(`/2/instances/${name}/${path}`, { user: 'carol', method, body });
    return JSON.stringify(await ended(Number(answer.body)));
  };
  assert.match(
    await change('modify', { beparams: { memory: 601 } }),
    /would exceed max-memory: 601 MiB of 600 MiB/,
  );
  assert.match(
    await change('disk/0/grow', { amount: 25 }, 'POST'),
    /would exceed max-disk: 41 MiB of 40 MiB/,
  );
  assert.match(await change('disk/0/grow', { amount: 24 }, 'POST'), /"status":"success"/);
  assert.match(await change('modify', { beparams: { memory: 600 } }), /"status":"success"/);
});
