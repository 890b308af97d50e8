import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceView } from '#shared/contract/view.ts';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { RenderFailure, Site } from '../../../metad/dialects/site.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView, installingView } from '../support/view-fixture.ts';

function siteOf(overrides: Partial<InstanceView> = {}): Site {
  return new Site(parseView(exampleView(overrides)), { password: '' });
}

function bodyAt(site: Site, path: string): string {
  const address = resolveAddress(path);
  const resource = address && site.find(address);
  assert.equal(resource?.kind, 'content', path);
  return resource?.kind === 'content' ? resource.body.toString() : '';
}

function crawl(site: Site, folder = ''): string[] {
  return bodyAt(site, folder)
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => {
      const path = [folder, line.replace(/\/$/, '')].filter((part) => part !== '').join('/');
      const address = resolveAddress(path);
      const resource = address && site.find(address);
      assert.ok(resource, `${path} is listed but cannot be read`);
      const isFolder = resource.kind === 'content' && resource.isFolder;
      return isFolder ? [`${path}/`, ...crawl(site, path)] : [path];
    });
}

test('the listing of versions has EC2’s versions without a slash', () => {
  assert.deepEqual(bodyAt(siteOf(), '').trimEnd().split('\n'), [
    ...['2009-04-04', '2016-09-02', '2018-09-24', '2021-03-23', 'latest'],
    ...['ganeti/', 'nocloud/', 'openstack/'],
  ]);
});

test('every listed path of every dialect can be read, running and installing', () => {
  const running = crawl(siteOf());
  assert.ok(running.includes('ganeti/latest/os/parameters.json'));
  assert.ok(running.includes('2009-04-04/meta-data/public-keys/0=key-0/openssh-key'));
  assert.ok(running.includes('openstack/2018-08-27/vendor_data2.json'));
  assert.ok(running.includes('nocloud/network-config'));
  assert.ok(!running.some((path) => /install|scripts|image|package/.test(path)));
  const installing = crawl(new Site(parseView(installingView()), { password: '' }));
  for (const path of [
    'install/plan.json',
    'install/hooks.json',
    'os/scripts/create',
    'os/definition.tar',
    'os/image',
    'os/package',
    'os/os-install-package',
    'read',
  ]) {
    assert.ok(installing.includes(`ganeti/2026-12-01/${path}`), path);
  }
});

test('a dialect that is not enabled is neither listed nor readable, but the appliance gets ganeti', () => {
  const site = siteOf({ dialects: ['nocloud'] });
  assert.equal(bodyAt(site, ''), 'nocloud/\n');
  for (const path of ['ganeti', 'ganeti/latest/meta_data.json', 'latest/user-data', 'openstack']) {
    const address = resolveAddress(path);
    assert.equal(address && site.find(address), undefined, path);
  }
  const installing = new Site(parseView({ ...installingView(), dialects: ['ec2'] }), {
    password: '',
  });
  assert.match(bodyAt(installing, 'ganeti/latest/install/plan.json'), /installId/);
});

test('the instance id is the same in all four dialects', () => {
  const site = siteOf();
  const { instanceId } = exampleView();
  const json = (path: string): Record<string, unknown> =>
    JSON.parse(bodyAt(site, path)) as Record<string, unknown>;
  assert.equal(json('ganeti/latest/meta_data.json').instance_id, instanceId);
  assert.equal(json('openstack/latest/meta_data.json').uuid, instanceId);
  assert.equal(json('latest/dynamic/instance-identity/document').instanceId, instanceId);
  assert.equal(bodyAt(site, 'latest/meta-data/instance-id'), instanceId);
  assert.match(bodyAt(site, 'nocloud/meta-data'), new RegExp(`^instance-id: ${instanceId}$`, 'm'));
});

test('binary user-data is the same bytes in the ec2, openstack and nocloud dialects', () => {
  const bytes = Buffer.from([0, 255, 10, 13, 128, 0]);
  const site = siteOf({ userData: bytes.toString('base64') });
  for (const path of ['latest/user-data', 'openstack/latest/user_data', 'nocloud/user-data']) {
    const address = resolveAddress(path);
    const resource = address && site.find(address);
    assert.ok(resource?.kind === 'content' && resource.body.equals(bytes), path);
  }
});

test('equal content has equal ETags in different views, and changed content has another ETag', () => {
  const etag = (overrides: Partial<InstanceView>): string => {
    const address = resolveAddress('latest/user-data');
    const resource = address && siteOf(overrides).find(address);
    return resource?.kind === 'content' ? resource.etag : '';
  };
  assert.match(etag({}), /^"[\w-]{22}"$/);
  assert.equal(etag({}), etag({ revision: 9, tags: [] }));
  assert.notEqual(etag({}), etag({ userData: null }));
});

test('a document with a lost secret gets 410 with the secret’s name', () => {
  const site = siteOf({
    osParameters: {
      rootpw: { value: null, visibility: 'secret' },
      other: { value: 'OTHERVALUE', visibility: 'secret' },
    },
  });
  const address = resolveAddress('ganeti/latest/os/parameters.json');
  const resource = address && site.find(address);
  assert.ok(resource?.kind === 'content');
  assert.equal(resource.status, 410);
  assert.match(resource.body.toString(), /rootpw/);
  assert.doesNotMatch(resource.body.toString(), /OTHERVALUE/);
  assert.ok(resource.headers.includes('no-store'));
});

test('parameters with slashes are listed and read one by one, beside a parameter with the name of their folder', () => {
  const site = siteOf({
    osParameters: Object.fromEntries(
      ['change-stage', 'change-stage/map', 'change-stage/map/x'].map((name) => [
        name,
        { value: `of ${name}`, visibility: 'public' as const },
      ]),
    ),
  });
  const base = 'ganeti/latest/os/parameters';
  assert.equal(bodyAt(site, base), 'change-stage\nchange-stage/map\nchange-stage/map/x\n');
  for (const name of ['change-stage', 'change-stage/map', 'change-stage/map/x'])
    assert.equal(bodyAt(site, `${base}/${name}`), `of ${name}`);
});

test('a dialect that cannot be rendered fails alone', () => {
  const view = parseView(exampleView());
  // An impossible date passes the contract's number check and cannot be written down as a time.
  const site = new Site({ ...view, createdAtMs: Number.MAX_VALUE }, { password: '' });
  const find = (path: string): unknown => {
    const address = resolveAddress(path);
    return address && site.find(address);
  };
  assert.throws(() => find('latest/user-data'), RenderFailure);
  assert.throws(() => find('latest/meta-data/hostname'), RenderFailure);
  assert.ok(find('nocloud/user-data'));
  assert.ok(find('ganeti/latest/meta_data.json'));
  assert.ok(find(''));
});
