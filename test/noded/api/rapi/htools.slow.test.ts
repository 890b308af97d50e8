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
  const { stdout } = await run(join(tools, 'usr/lib/ganeti/3.0/usr/bin', name), words, {
    cwd: scratch,
    env: {
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

test('hscan writes a file that hbal can load', async () => {
  await runTool('hscan', '-d', scratch, url);
  const [file] = (await readdir(scratch)).filter((one) => one.endsWith('.data'));
  assert.ok(file !== undefined);
  const output = await runTool('hbal', '-t', join(scratch, file));
  assert.match(output, /^Loaded 1 nodes, 2 instances$/m);
});
