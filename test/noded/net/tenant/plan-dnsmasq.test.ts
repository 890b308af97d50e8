import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkGuest } from '#shared/contract/network.ts';
import { isInDomains, ownDomainsOf } from '../../../../noded/net/tenant/own-domains.ts';
import {
  dropForeignLeases,
  formatHosts as format,
  formatReservations,
  planDnsmasq,
} from '../../../../noded/net/tenant/plan-dnsmasq.ts';

const guest = (name: string, ip: string): NetworkGuest => ({
  ...{ device: 'gn0', mac: 'aa:00:00:00:00:01', network: 'lan', reach: 'all' },
  ...{ name, ip },
});

const formatHosts = (
  guests: readonly NetworkGuest[],
  domains: readonly string[] = [],
  members: readonly string[] = [],
): string => format(guests, { domains, members });

test('localhost, wpad and isatap are not served as names of guests', () => {
  const guests = [
    guest('web.example.com', '10.9.0.5'),
    guest('wpad', '10.9.0.6'),
    guest('localhost', '10.9.0.7'),
    guest('wpad.example.com', '10.9.0.8'),
    guest('isatap.vm.acme.com', '10.9.0.9'),
  ];
  assert.equal(formatHosts(guests, ['vm.acme.com']), '10.9.0.5 web.example.com web\n');
});

test('a name that is the full name of one instance and the first label of another is not served', () => {
  const guests = [guest('db.corp.example', '10.9.0.5'), guest('db', '10.9.0.6')];
  assert.equal(formatHosts(guests), '10.9.0.5 db.corp.example\n');
});

test('a label of two instances is not served', () => {
  const guests = [guest('db.one.example', '10.9.0.5'), guest('db.two.example', '10.9.0.6')];
  assert.equal(formatHosts(guests), '10.9.0.5 db.one.example\n10.9.0.6 db.two.example\n');
});

test('a short name that an instance without a running guest here shares is not served', () => {
  const guests = [guest('db', '10.9.0.6'), guest('web.two.example', '10.9.0.7')];
  const members = ['db.corp.example', 'db', 'web.two.example'];
  assert.equal(formatHosts(guests, [], members), '10.9.0.7 web.two.example web\n');
});

test('both NICs of an instance have its label', () => {
  const guests = [guest('db.one.example', '10.9.0.5'), guest('db.one.example', '10.9.0.6')];
  assert.equal(formatHosts(guests), '10.9.0.5 db.one.example db\n10.9.0.6 db.one.example db\n');
});

test('a guest named like a server of another domain is found by its first label only', () => {
  const guests = [guest('deb.debian.org', '10.9.0.5'), guest('ldap.corp.acme', '10.9.0.6')];
  assert.equal(formatHosts(guests), '10.9.0.5 deb\n10.9.0.6 ldap\n');
  assert.equal(formatHosts([guest('example.com', '10.9.0.5')]), '10.9.0.5 example\n');
});

test('a network has the domains that its tags name, and nothing above or beside them', () => {
  const domains = ownDomainsOf(['site', 'domain:vm.Acme.com', 'domain:', 'domains:org']);
  const names = [
    'web.vm.acme.com',
    'a.b.vm.acme.com',
    'www.acme.com',
    'vm.acme.com',
    'evilvm.acme.com',
  ];
  assert.deepEqual(
    names.filter((name) => isInDomains(name, domains)),
    ['web.vm.acme.com', 'a.b.vm.acme.com'],
  );
  assert.equal(
    formatHosts([guest('web.vm.acme.com', '10.9.0.5')], domains),
    '10.9.0.5 web.vm.acme.com web\n',
  );
  for (const name of ['x.debian.org', 'x.com', 'org', 'x'])
    assert.ok(!isInDomains(name, domains), name);
});

test('dnsmasq serves one network, from files of its own, as a user without rights', () => {
  const network = { name: 'lan', bridge: 'gb0', network: '10.9.0.0/20', gateway: '10.9.0.1' };
  const files = { identity: '/i', leases: '/l', reservations: '/r', hosts: '/h' };
  const words = planDnsmasq({ ...network, domains: [], members: [] }, files, 1234);
  assert.deepEqual(words.slice(0, 2), ['/bin/sh', '-c']);
  assert.match(
    words[2] ?? '',
    /setpriv --reuid=1234 --regid=1234 --clear-groups .*--no-new-privs -- "\$@"$/,
  );
  assert.deepEqual(words.slice(3), [
    'sh',
    '/i',
    'dnsmasq',
    '--keep-in-foreground',
    '--conf-file=/dev/null',
    '--pid-file=',
    '--log-facility=-',
    '--quiet-dhcp',
    '--no-ping',
    '--no-hosts',
    '--interface=gb0',
    '--except-interface=lo',
    '--bind-interfaces',
    '--dhcp-range=10.9.0.0,static,255.255.240.0,1h',
    '--dhcp-authoritative',
    '--dhcp-ignore=tag:!known',
    '--dhcp-ignore-names',
    '--dhcp-ignore-clid',
    '--dhcp-broadcast',
    '--dhcp-option=option:router,10.9.0.1',
    '--dhcp-option=option:dns-server,10.9.0.1',
    '--dhcp-hostsfile=/r',
    '--addn-hosts=/h',
    '--dhcp-leasefile=/l',
    '--domain-needed',
    '--bogus-priv',
    '--local-ttl=10',
  ]);
});

test('a guest has a reservation, and loses no lease but those of its address', () => {
  const guests = [
    { ...guest('web', '10.9.0.5'), mac: 'aa:00:00:00:00:05' },
    guest('db', '10.9.0.6'),
  ];
  assert.equal(
    formatReservations(guests),
    'aa:00:00:00:00:05,10.9.0.5\naa:00:00:00:00:01,10.9.0.6\n',
  );
  const lines = [
    '1700000000 aa:00:00:00:00:05 10.9.0.5 web *',
    '1700000000 aa:00:00:00:00:99 10.9.0.6 old *',
    '1700000000 aa:00:00:00:00:98 10.9.0.7 gone *',
    '',
  ];
  const kept = [lines[0], lines[2], ''];
  assert.equal(dropForeignLeases(lines.join('\n'), guests), kept.join('\n'));
});
