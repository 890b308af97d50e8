import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkGuest } from '#shared/contract/network.ts';
import { formatHosts } from '../../../noded/networks/plan-dnsmasq.ts';

const guest = (name: string, ip: string): NetworkGuest => ({
  ...{ device: 'gn0', mac: 'aa:00:00:00:00:01', network: 'lan', reach: 'all' },
  ...{ name, ip },
});

test('no guest is found as localhost, or as everybody’s proxy', () => {
  const guests = [
    guest('web.example.com', '10.9.0.5'),
    guest('wpad', '10.9.0.6'),
    guest('localhost', '10.9.0.7'),
    guest('wpad.example.com', '10.9.0.8'),
  ];
  assert.equal(formatHosts(guests), '10.9.0.5 web.example.com web\n10.9.0.8 wpad.example.com\n');
});

test('an instance whose full name is the first label of another gets no traffic of that one', () => {
  const guests = [guest('db.corp.example', '10.9.0.5'), guest('db', '10.9.0.6')];
  assert.equal(formatHosts(guests), '10.9.0.5 db.corp.example\n');
});

test('a label that two instances have leads to neither', () => {
  const guests = [guest('db.one.example', '10.9.0.5'), guest('db.two.example', '10.9.0.6')];
  assert.equal(formatHosts(guests), '10.9.0.5 db.one.example\n10.9.0.6 db.two.example\n');
});

test('both NICs of an instance have its label', () => {
  const guests = [guest('db.one.example', '10.9.0.5'), guest('db.one.example', '10.9.0.6')];
  assert.equal(formatHosts(guests), '10.9.0.5 db.one.example db\n10.9.0.6 db.one.example db\n');
});
