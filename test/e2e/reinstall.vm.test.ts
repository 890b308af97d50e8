import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { osInfo } from '#shared/contract/api.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { addDefinitions } from './support/definitions.ts';
import { endLab } from './support/end-lab.ts';
import { digestDisks } from './support/installed.ts';

/**
 * Errors of a reinstallation that only an appliance finds, before and during its writes.
 * reinstall.slow.test.ts has errors without an appliance, install-failures.long.test.ts other
 * checks of the appliance.
 */
const NAME = 'kept.example.com';
let lab: Lab;
let image: string;

before(async () => {
  lab = await createLab('gnt-kept');
  image = join(lab.paths.root, 'small.img');
  await run('mke2fs', ['-q', '-t', 'ext4', '-d', '/etc/apt', image, '24M']);
  await addDefinitions(lab, 'hello', 'failing');
  await lab.startNode();
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', NAME]);
  await endLab(lab);
});

async function info(): Promise<InstanceInfo> {
  const { stdout } = await lab.run('gnt-instance', ['info', '--json', NAME]);
  return instanceInfo.parse(JSON.parse(stdout));
}

async function reinstall(...options: readonly string[]): Promise<ProgramResult> {
  return lab.run('gnt-instance', ['reinstall', '--force', '--no-start', ...options, NAME]);
}

/** Compares the provenance with the definition and the appliance of the node. */
async function checkProvenance(): Promise<void> {
  const definitions = await lab.run('gnt-os', ['info', '--json', 'hello']);
  const manifest = await readFile(join(lab.paths.applianceDir, 'manifest.json'));
  assert.deepEqual((await info()).install?.provenance, {
    // A local file without checksum and signature is not verified.
    ...{ imageChecksum: null, imageKey: null },
    osDigest: osInfo.parse(JSON.parse(definitions.stdout)).trust.digest,
    applianceDigest: `sha256:${createHash('sha256').update(manifest).digest('hex')}`,
  });
}

test('leaves an instance as it was when a reinstallation turns out to be bad inside the appliance', async () => {
  const { root } = lab.paths;
  const path = (name: string): string => join(root, name);
  await writeFile(path('broken.yaml'), 'stages: {install.pre: no list}');
  const add = ['add', '--no-start', '--os-image', image, '-o', 'hello', '-s', '32M', NAME];
  const added = await lab.run('gnt-instance', add);
  assert.equal(added.status, 0, added.stderr);
  await checkProvenance();
  const snapshot = async (): Promise<unknown> => {
    const record = { ...(await info()), modifiedAtMs: 0, serialNo: 0 };
    return { record, disks: await digestDisks(lab, record.uuid) };
  };
  const before = await snapshot();
  const bad = path('broken.tar.gz');
  await writeFile(bad, 'this is no archive');
  const inputs: (readonly [code: string, stage: string, ...args: string[]])[] = [
    ['SCRIPT_FAILED', 'os-scripts', '-o', 'failing'],
    // Without room for new disks, an appliance without any disks checks first.
    ['PACKAGE_INVALID', 'personalize', '--no-keep-old', '--personalization-package', bad],
  ];
  for (const [code, stage, ...args] of inputs) {
    const result = await reinstall(...args);
    assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: .*\\(stage ${stage}\\)$`, 'm'));
    assert.deepEqual(await snapshot(), before, `${args.join(' ')}: ${result.stderr}`);
  }
  // The host reports its own findings before it boots an appliance.
  const refused = await reinstall('--no-keep-old', '--hooks', path('broken.yaml'));
  assert.match(refused.stderr, /^error\[VALIDATION\]: hooks instance\/broken\.yaml: /m);
  assert.equal(refused.status, 2);
  assert.deepEqual(await snapshot(), before);
});
