import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceView } from '#shared/contract/view.ts';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { Site, type SiteState } from '../../../metad/dialects/site.ts';
import type { ContentResource } from '../../../metad/dialects/tree.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const ROOT = 'computeMetadata/v1';
const NICS = [
  {
    mac: 'aa:00:00:85:84:fd',
    communication: false,
    network: {
      addresses: ['192.0.2.10/20'],
      gateways: ['192.0.2.1'],
      nameservers: ['192.0.2.53', '192.0.2.54'],
      search: [],
      routes: [],
      mtu: 1400,
    },
  },
  { mac: '52:54:00:e1:a3:45', communication: true },
];

function siteOf(overrides: Partial<InstanceView> = {}, state: Partial<SiteState> = {}): Site {
  const view = exampleView({ dialects: ['gce'], nics: NICS, ...overrides });
  return new Site(parseView(view), { password: '', ...state });
}

function find(site: Site, path: string): ContentResource | undefined {
  const address = resolveAddress(`${ROOT}/${path}`.replace(/\/$/, ''));
  const found = address && site.find(address);
  return found?.kind === 'content' ? found : undefined;
}

function textOf(site: Site, path: string): string | undefined {
  return find(site, path)?.body.toString();
}

function wholeOf(site: Site, path: string): unknown {
  const whole = find(site, path)?.whenRecursive?.('json');
  return whole && JSON.parse(whole.body.toString());
}

test('each value has a path in the spelling of Google', () => {
  const site = siteOf();
  const nic = 'instance/network-interfaces/0';
  const expected = [
    ['instance/hostname', 'web1.example.com'],
    ['instance/name', 'web1'],
    ['instance/zone', 'projects/cluster.example.com/zones/node1.example.com'],
    ['instance/machine-type', 'projects/cluster.example.com/machineTypes/custom-2-512'],
    ['instance/tags', '["web","env:prod"]'],
    ['instance/attributes/role', 'frontend'],
    ['instance/attributes/enable-oslogin', 'FALSE'],
    ['instance/attributes/ssh-keys', 'cloudinit:ssh-ed25519 AAAAC3Nza operator@example.com'],
    ['instance/attributes/user-data', '#cloud-config\nlocale: false\n'],
    [`${nic}/ip`, '192.0.2.10'],
    [`${nic}/subnetmask`, '255.255.240.0'],
    [`${nic}/gateway`, '192.0.2.1'],
    [`${nic}/mtu`, '1400'],
    ['project/project-id', 'cluster.example.com'],
    ['universe/universe-domain', 'googleapis.com'],
  ] as const;
  assert.deepEqual(
    expected.map(([path]) => [path, textOf(site, path)]),
    expected,
  );
});

test('every listed path can be read, and a listing contains every folder with a slash', () => {
  const site = siteOf({}, { guestAttributes: new Map([['hostkeys', new Map([['rsa', 'AAAA']])]]) });
  const read: string[] = [];
  const visit = (folder: string): void => {
    for (const entry of (textOf(site, folder) ?? '').split('\n').filter((line) => line !== '')) {
      const path = `${folder}${entry}`;
      assert.ok(find(site, path), path);
      assert.equal(find(site, path)?.isFolder, entry.endsWith('/'), path);
      read.push(path);
      if (entry.endsWith('/')) visit(path);
    }
  };
  visit('');
  assert.ok(read.includes('instance/guest-attributes/hostkeys/rsa'));
  assert.ok(read.length > 30, String(read.length));
});

test('a folder as JSON has the names of Google, and the numbers of instances are exact', () => {
  const whole = wholeOf(siteOf(), '') as {
    readonly instance: {
      readonly id: number;
      readonly networkInterfaces: readonly { readonly dnsServers: readonly string[] }[];
    };
    readonly project: { readonly numericProjectId: number };
  };
  assert.deepEqual(whole.instance.networkInterfaces[0]?.dnsServers, ['192.0.2.53', '192.0.2.54']);
  assert.equal(whole.instance.networkInterfaces.length, 1);
  assert.ok(Number.isSafeInteger(whole.instance.id) && whole.instance.id > 0);
  assert.equal(textOf(siteOf(), 'instance/id'), String(whole.instance.id));
  assert.ok(Number.isSafeInteger(whole.project.numericProjectId));
});

test('a folder as text has a line of path and value for each file, without tokens', () => {
  const guestAttributes = new Map([['a', new Map([['b', 'two words']])]]);
  const identity = { google: { account: 'web@example.iam.gserviceaccount.com' } };
  const site = siteOf({ identity }, { guestAttributes });
  const linesOf = (path: string): string[] =>
    find(site, path)?.whenRecursive?.('text').body.toString().split('\n') ?? [];
  assert.deepEqual(linesOf('instance/guest-attributes'), ['a/b two words', '']);
  assert.deepEqual(linesOf('instance/service-accounts/default'), [
    'aliases default',
    'email web@example.iam.gserviceaccount.com',
    'scopes https://www.googleapis.com/auth/cloud-platform',
    '',
  ]);
  const all = linesOf('');
  assert.ok(all.includes('instance/network-interfaces/0/ip 192.0.2.10'), all.join('\n'));
  assert.ok(all.includes('instance/tags ["web","env:prod"]'));
  assert.ok(all.includes('universe/universe-domain googleapis.com'));
});

test('a guest may name a namespace like a list of Google', () => {
  const guestAttributes = new Map([['tags', new Map([['color', 'blue']])]]);
  const site = siteOf({}, { guestAttributes });
  assert.equal(textOf(site, 'instance/guest-attributes/tags/color'), 'blue');
  assert.equal(textOf(site, 'instance/guest-attributes/tags'), 'color\n');
});

test('service accounts and their tokens need no other dialect than Google’s', () => {
  const identity = { google: { account: null } };
  const folder = `${ROOT}/instance/service-accounts/default`;
  const found = (dialects: InstanceView['dialects']) =>
    ['email', 'token', 'identity'].map((name) => {
      const address = resolveAddress(`${folder}/${name}`);
      return address && siteOf({ dialects, identity }).find(address)?.kind;
    });
  assert.deepEqual(found(['gce']), ['content', 'live', 'live']);
  assert.deepEqual(found(['ganeti']), ['content', 'live', 'live']);
  assert.deepEqual(found(['ec2']), [undefined, undefined, undefined]);
});

test('another installation has another instance id', () => {
  const instanceId = '11111111-2222-4333-8444-555555555555';
  assert.notEqual(textOf(siteOf(), 'instance/id'), textOf(siteOf({ instanceId }), 'instance/id'));
});

test('user data that is not text is served in base64, and says so', () => {
  const bytes = Buffer.from([0x1f, 0x8b, 0, 0xff]).toString('base64');
  const site = siteOf({ userData: bytes });
  assert.equal(textOf(site, 'instance/attributes/user-data'), bytes);
  assert.equal(textOf(site, 'instance/attributes/user-data-encoding'), 'base64');
  assert.equal(textOf(siteOf(), 'instance/attributes/user-data-encoding'), undefined);
});

test('an attribute of the operator replaces a derived one', () => {
  const key =
    'anna:ssh-ed25519 AAAA google-ssh {"userName":"anna","expireOn":"2030-01-01T00:00:00+0000"}';
  const site = siteOf({ metadata: { 'ssh-keys': key } });
  assert.equal(textOf(site, 'instance/attributes/ssh-keys'), key);
});

test('attributes with the names of inherited members, and with slashes, are data', () => {
  const metadata = { constructor: 'b', '../x': 'c', 'a/b': 'd' };
  const site = siteOf({ metadata });
  assert.equal(textOf(site, 'instance/attributes/constructor'), 'b');
  const whole = find(site, 'instance/attributes')?.whenRecursive?.('json').body.toString() ?? '';
  for (const name of Object.keys(metadata)) assert.ok(whole.includes(JSON.stringify(name)), name);
  assert.equal(textOf(site, 'instance/attributes/a/b'), undefined);
  assert.equal(textOf(site, 'instance/x'), undefined);
});

test('the ETag in answers has no quotes, since clients put it into a URL', () => {
  const { headers = [] } = find(siteOf(), 'instance/hostname') ?? {};
  assert.match(headers[headers.indexOf('ETag') + 1] ?? '', /^[\w-]{22}$/);
  assert.equal(headers[headers.indexOf('Metadata-Flavor') + 1], 'Google');
});

test('without the dialect nothing is served, and with it the root lists its folder', () => {
  const other = siteOf({ dialects: ['ec2'] });
  assert.equal(find(other, 'instance/hostname'), undefined);
  const root = siteOf().find({ kind: 'root' });
  assert.equal(root?.kind === 'content' ? root.body.toString() : '', 'computeMetadata/\n');
});

test('an instance with the channel alone has it as its network interface', () => {
  const site = siteOf({ nics: NICS.slice(1) });
  assert.equal(textOf(site, 'instance/network-interfaces/0/mac'), '52:54:00:e1:a3:45');
});

test('the root has Google’s header only where Google’s paths are served', () => {
  const flavorOf = (overrides: Partial<InstanceView>): string | undefined => {
    const root = siteOf(overrides).find({ kind: 'root' });
    const headers = root?.kind === 'content' ? root.headers : [];
    return headers[headers.indexOf('Metadata-Flavor') + 1];
  };
  const identity = { google: { account: null } };
  assert.equal(flavorOf({ dialects: ['ec2', 'gce'] }), 'Google');
  assert.equal(flavorOf({ dialects: ['ec2'], identity }), 'Google');
  assert.notEqual(flavorOf({ dialects: ['ec2'] }), 'Google');
});
