import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { BootEnv } from '#shared/contract/boot-env.ts';
import { readBootContent } from '../../../cluster-cli/commands/bootenv/read-content.ts';
import { createValueSource } from '../../../cluster-cli/values/value-source.ts';
import type { BootPlan } from '../../../noded/netboot/boot-plan.ts';
import { refuseWrongPaths } from '../../../noded/netboot/place-templates.ts';
import { address, baseUrl, plan, publicly, refusal, uuid } from './plan-fixture.ts';

/** Boot environments with the members, functions and Paths that published ones have. */
const FOLDER = fileURLToPath(
  new URL('../../../fixtures/bootenvs/published-shapes', import.meta.url),
);
const content = readBootContent([FOLDER], createValueSource());
const templates = new Map(content.templates.map(({ ID, Contents }) => [ID, Contents]));
const schemas = new Map(content.params.map((param) => [param.Name, param]));

/** Plans a BootEnv with one repository of its system. */
function planPublished(bootEnv: BootEnv): BootPlan {
  const repositories = [
    {
      tag: 'os',
      os: [bootEnv.OS.Name],
      arch: 'x86_64',
      url: `http://mirror.example/${bootEnv.OS.Name}`,
      installSource: true,
    },
  ];
  const parameters = publicly({
    'package-repositories': JSON.stringify(repositories),
    network: '{"eth0":{"dhcp4":true}}',
  });
  return plan({}, { bootEnv, templates, schemas, parameters, layers: [{ values: parameters }] });
}

function find(name: string): BootEnv {
  return content.bootEnvs.find(({ Name }) => Name === name) ?? assert.fail(name);
}

function contentsOf({ files }: BootPlan, name: string): string {
  return files.find(({ path }) => path.endsWith(name))?.contents ?? assert.fail(name);
}

test('a folder is accepted without the BootEnv whose kernel is not a path, which is listed', () => {
  assert.deepEqual(content.bootEnvs.map(({ Name }) => Name).sort(), [
    ...['agent', 'centos-7-install', 'photon-4-install', 'rocky-9-install'],
    ...['ubuntu-20.04-install', 'unknown'],
  ]);
  const [named] = content.leftOut.filter((line) => line.includes('chain.yaml'));
  assert.match(named ?? '', /bootenvs\/chain\.yaml:5: Kernel: not a path within an archive/);
});

test('each published BootEnv for known machines renders with a repository and no archive', () => {
  for (const bootEnv of content.bootEnvs) refuseWrongPaths(bootEnv);
  const known = content.bootEnvs.filter(({ Name }) => Name !== 'unknown');
  for (const bootEnv of known) {
    const { files, script, source } = planPublished(bootEnv);
    assert.equal(source?.kind, 'repository', bootEnv.Name);
    assert.ok(
      files.every((file) => file.contents !== null && !file.contents.includes('<no value>')),
    );
    assert.match(
      files.find(({ path }) => path === script)?.contents ?? '',
      /^kernel \S+ initrd=\S+ /m,
      bootEnv.Name,
    );
  }
});

test('a BootEnv for unknown machines is accepted without its files, and cannot be planned', () => {
  const unknown = find('unknown');
  assert.deepEqual(unknown.Templates, []);
  assert.match(unknown.LeftOut?.join('\n') ?? '', /'join', which is for unknown machines/);
  const { message } = refusal('BOOTENV_INVALID', () => planPublished(unknown));
  assert.match(message, /no iPXE script/);
});

test('files for a Raspberry Pi and for GRUB are left out by name', () => {
  const { leftOut, files } = planPublished(find('agent'));
  assert.equal(leftOut.length, 3, leftOut.join('\n'));
  for (const name of ['start4.elf', 'cmdline.txt', 'grub-secure'])
    assert.ok(
      leftOut.some((line) => line.includes(`'${name}'`)),
      name,
    );
  assert.deepEqual(
    files.map(({ path }) => path),
    [`${address}.ipxe`, `machines/${uuid}/agent.yml`, `machines/${uuid}/control.sh`],
  );
});

test("an API address renders as the address of the instance's files", () => {
  const photon = planPublished(find('photon-4-install'));
  const answers = `${baseUrl}/machines/${uuid}/compute.ks`;
  assert.ok(contentsOf(photon, '.ipxe').includes(` ks=${answers} `));
  assert.ok(photon.files.some(({ path }) => `${baseUrl}/${path}` === answers));
  assert.deepEqual(photon.constants, ['.ApiURL', '.GenerateInfiniteToken']);
});
