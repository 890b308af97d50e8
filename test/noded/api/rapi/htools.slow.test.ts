import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import type { Lab } from '../../../../scripts/demo/lab.ts';
import { unpackPackages } from '../../../metad/support/foreign-clients.ts';
import { createRapiLab } from './rapi-lab.ts';

/** Ganeti's htools read a node with two instances through the remote API. */
const PASSWORD = 'word';
/** Local disks do not start on another node, so there is no room to keep for that. */
const NO_FAILOVER = '--no-capacity-checks';

let lab: Lab;
let tools: string;
let url: string;
let scratch: string;

before(async () => {
  tools = await unpackPackages('htools', ['ganeti-htools-3.0', 'libcurl3-gnutls', 'libpcre3']);
  scratch = await mkdtemp(join(tmpdir(), 'gnt-htools-'));
  const rapi = await createRapiLab('gnt-htools', PASSWORD, ['reader']);
  ({ lab } = rapi);
  url = `https://reader:${PASSWORD}@127.0.0.1:${rapi.port}`;
  const image = join(scratch, 'image');
  await writeFile(image, Buffer.alloc(1024 * 1024));
  for (const name of ['web1.example.com', 'web2.example.com']) {
    const words = [
      'add',
      '--no-install',
      '--no-start',
      '--os-image',
      image,
      '-t',
      'file',
      '--disk',
      '0:size=2G',
    ];
    const added = await lab.run('gnt-instance', [...words, '-B', 'memory=256M', name]);
    assert.equal(added.status, 0, added.stderr);
  }
});

after(async () => {
  await lab.stopNode();
  await lab.dispose();
  await rm(scratch, { recursive: true });
});

async function runTool(name: string, ...words: readonly string[]): Promise<string> {
  const { stdout } = await run(join(tools, 'usr/lib/ganeti/3.0/usr/bin/htools'), words, {
    cwd: scratch,
    env: {
      // One program has all tools, and takes its name from here.
      HTOOLS: name,
      LD_LIBRARY_PATH: ['usr/lib', 'lib']
        .map((one) => join(tools, one, 'x86_64-linux-gnu'))
        .join(':'),
    },
  });
  return stdout;
}

test('hinfo loads nodes, instances and groups', async () => {
  const output = await runTool('hinfo', '-m', url);
  assert.match(output, /^Loaded 1 node, 2 instances, 1 node group$/m);
  assert.match(output, /^Cluster is N\+1 happy$/m);
});

test('hbal judges the balance of the cluster', async () => {
  const output = await runTool('hbal', '-m', url);
  assert.match(output, /^Selected node group: default$/m);
  assert.match(output, /^Initial check done: 0 bad nodes, 0 bad instances\.$/m);
  assert.match(output, /^Cluster is already well balanced/m);
});

test('hspace counts the capacity of the cluster', async () => {
  const output = await runTool('hspace', '-m', url);
  assert.match(output, /^There are 2 initial instances on the cluster\.$/m);
  assert.match(output, /^ {2}MEM 512, DSK 10240, CPU 1, using disk template 'file'\.$/m);
});

test('hspace finds room without a reserve for the failover of local disks', async () => {
  const words = ['--disk-template=file', '--standard-alloc=1024,128,1', '--machine-readable=yes'];
  const counts = async (...more: readonly string[]): Promise<number> => {
    const output = await runTool('hspace', '-m', url, ...words, ...more);
    return Number(/^HTS_ALLOC_INSTANCES=(\d+)$/m.exec(output)?.[1]);
  };
  assert.equal(await counts(), 0);
  assert.ok((await counts(NO_FAILOVER)) > 0);
});

test('hscan writes a file that hbal can load', async () => {
  await runTool('hscan', '-d', scratch, url);
  const [file] = (await readdir(scratch)).filter((one) => one.endsWith('.data'));
  assert.ok(file !== undefined);
  const output = await runTool('hbal', '-t', join(scratch, file));
  assert.match(output, /^Loaded 1 nodes, 2 instances$/m);
});

test('hail places an instance by the file of hscan', async () => {
  await runTool('hscan', '-d', scratch, url);
  const [file = ''] = (await readdir(scratch)).filter((one) => one.endsWith('.data'));
  const request = join(scratch, 'request.json');
  const place = async (memory: number): Promise<string> => {
    await writeFile(request, JSON.stringify(describeAllocation(memory)));
    return runTool('hail', NO_FAILOVER, '-t', join(scratch, file), request);
  };
  assert.match(await place(128), /"success":true,.*"result":\["node1\.example\.com"\]/);
  assert.match(await place(8 * 1024 ** 2), /"success":false,/);
});

/** Returns a request of Ganeti's protocol of allocators. The state of the cluster is elsewhere. */
function describeAllocation(memory: number): object {
  return {
    ...{ cluster_tags: [], enabled_hypervisors: ['kvm'], nodegroups: {}, nodes: {}, instances: {} },
    request: {
      ...{ type: 'allocate', name: 'new.example.com', memory, vcpus: 1, spindle_use: 1 },
      ...{ disks: [{ size: 1024, mode: 'w' }], disk_space_total: 1024, disk_template: 'file' },
      ...{ os: 'debian', tags: [], nics: [], required_nodes: 1, hypervisor: 'kvm' },
    },
  };
}
