import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readBootContent } from '../../../cluster-cli/commands/bootenv/read-content.ts';
import { createValueSource } from '../../../cluster-cli/values/value-source.ts';
import { refuseWrongPaths } from '../../../noded/netboot/place-templates.ts';
import { baseUrl, mac, plan, publicly, sha256, uuid } from './plan-fixture.ts';

/** Debian's BootEnv of Digital Rebar's community content, without two lines that need a token. */
const FOLDER = fileURLToPath(new URL('../../../fixtures/bootenvs/digitalrebar', import.meta.url));

function load() {
  const content = readBootContent([FOLDER], createValueSource());
  const [bootEnv] = content.bootEnvs;
  assert.ok(bootEnv && content.bootEnvs.length === 1);
  const templates = new Map(content.templates.map(({ ID, Contents }) => [ID, Contents]));
  const schemas = new Map(content.params.map((param) => [param.Name, param]));
  return { bootEnv, templates, schemas, leftOut: content.leftOut };
}

test("dr-provision's published BootEnv of Debian is accepted and rendered", () => {
  const { leftOut, ...published } = load();
  assert.deepEqual(
    leftOut.map((line) => line.slice(FOLDER.length)),
    [],
  );
  refuseWrongPaths(published.bootEnv);
  const given = publicly({
    'operating-system-disk': 'vda',
    'ntp-servers': '["ntp.example.com"]',
    'extra-packages': '["vim","tmux"]',
    'provisioner-default-user': 'operator',
  });
  const made = plan(
    {},
    {
      ...{ ...published, parameters: given },
      archive: () => ({ sha256, has: (path) => path !== 'dists/stable/Release' }),
    },
  );
  const contentOf = (name: string): string =>
    made.files.find(({ path }) => path.endsWith(name))?.contents ?? assert.fail(name);
  assert.equal(made.leftOut.length, 2, 'what pxelinux would get');
  const tree = `${baseUrl}/machines/${uuid}/boot`;
  const script = contentOf(`${mac}.ipxe`);
  assert.match(
    script,
    new RegExp(
      `^kernel ${tree}/linux initrd=initrd\\.gz auto preseed/url=${baseUrl}/machines/${uuid}/seed `,
      'm',
    ),
  );
  assert.match(script, new RegExp(`^initrd ${tree}/initrd\\.gz$`, 'm'));
  const seed = contentOf('/seed');
  assert.match(seed, /^d-i netcfg\/get_hostname string web1$/m);
  assert.match(seed, /^d-i clock-setup\/ntp-server string ntp\.example\.com$/m);
  assert.match(seed, /efibootmgr vim tmux$/m);
  assert.match(seed, /^d-i passwd\/username string operator$/m);
  assert.match(seed, /vda/);
  assert.match(contentOf('/post-install.sh'), /^#!/);
  assert.ok(made.files.every(({ contents }) => !contents?.includes('<no value>')));
});

test('GenerateInfiniteToken renders as no-token', () => {
  const { bootEnv, templates, schemas } = load();
  const setup = templates.get('setup.tmpl') ?? '';
  templates.set('setup.tmpl', `export RS_TOKEN="{{.GenerateInfiniteToken}}"\n${setup}`);
  const { files, constants } = plan(
    {},
    { bootEnv, templates, schemas, archive: () => ({ sha256, has: () => true }) },
  );
  const script = files.find(({ path }) => path.endsWith('/post-install.sh'));
  assert.match(script?.contents ?? '', /^export RS_TOKEN="no-token"$/m);
  assert.deepEqual(constants, ['.GenerateInfiniteToken']);
});
