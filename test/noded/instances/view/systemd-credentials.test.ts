import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeSmbiosStrings } from '../../../../noded/vmm/launch-qemu.ts';
import { planSystemdCredentials } from '../../../../noded/instances/view/systemd-credentials.ts';
import { instanceRecord } from '../../support/records.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJXo someone';

/** Decodes credentials as systemd does, by name. */
function credentials(
  changes: Parameters<typeof instanceRecord>[0],
): Readonly<Record<string, string>> {
  const strings = planSystemdCredentials(instanceRecord({ communication: true, ...changes }));
  encodeSmbiosStrings(strings);
  return Object.fromEntries(
    strings.map((text) => {
      const [, isBinary, name = '', value = ''] =
        /^io\.systemd\.credential(\.binary)?:([^=]+)=(.*)$/s.exec(text) ?? [];
      return [name, isBinary ? Buffer.from(value, 'base64').toString() : value];
    }),
  );
}

test('a guest is told its name, its keys, how its channel is configured, and where the service is', () => {
  const told = credentials({ name: 'web1.example.com', sshKeys: [KEY, `${KEY}-else`] });
  assert.equal(told['system.hostname'], 'web1');
  assert.equal(told['ssh.authorized_keys.root'], `${KEY}\n${KEY}-else\n`);
  assert.match(told['network.network.50-gnt'] ?? '', /^MACAddress=([0-9a-f]{2}:){5}[0-9a-f]{2}$/m);
  assert.equal(told['imds.data_url'], 'http://169.254.169.254/latest');
  assert.equal(told['imds.vendor_token'], 'http://169.254.169.254/latest/api/token');
  assert.equal(told['imds.key_ipv4_public'], undefined);
});

test('nothing is told without the channel, and where the operator wants it so', () => {
  assert.deepEqual(credentials({ communication: false, sshKeys: [KEY] }), {});
  assert.deepEqual(credentials({ hvparams: { systemd_credentials: 'no' } }), {});
});

test('a guest that has no EC2 tree is not sent there', () => {
  const names = Object.keys(credentials({ dialects: ['ganeti', 'nocloud'] }));
  assert.deepEqual(names, ['system.hostname', 'network.network.50-gnt']);
});

test('only user data for systemd is imported by it: to wait for the network early is a circle in some guests', () => {
  const wanted = (text: string): string | undefined =>
    credentials({ userData: Buffer.from(text).toString('base64') })[
      'systemd.unit-dropin.sysinit.target'
    ];
  const imports = '[Unit]\nWants=systemd-imdsd.socket systemd-imds-import.service\n';
  assert.equal(wanted('#systemd-userdata\n{}'), imports);
  assert.equal(wanted('{"systemd.credentials":[]}'), imports);
  for (const text of ['#cloud-config\n# "systemd.credentials"', '{"ignition":{}}', '', '#!/bin/sh'])
    assert.equal(wanted(text), '[Unit]\nWants=systemd-imdsd.socket\n', text);
});

test("the entry for systemd's hwdb says the same as the credentials", async () => {
  const path = join(import.meta.dirname, '../../../../fixtures/systemd/40-imds-gnt.hwdb');
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => !line.startsWith('#'));
  assert.equal(
    lines.find((line) => line.startsWith('dmi:')),
    'dmi:*:svngnt:*',
  );
  const properties = lines.flatMap((line) => {
    const [, name = '', value = ''] = /^ IMDS_(\w+)=(.*)$/.exec(line) ?? [];
    const credential = name === 'TOKEN_URL' ? 'vendor_token' : name.toLowerCase();
    return name === '' ? [] : [[`imds.${credential}`, value]];
  });
  const told = Object.entries(credentials({})).filter(([name]) => name.startsWith('imds.'));
  assert.deepEqual(Object.fromEntries(properties), Object.fromEntries(told));
});

test('keys that SMBIOS has no room for are left out whole', () => {
  const long = `ssh-rsa ${'A'.repeat(9000)}`;
  assert.equal(credentials({ sshKeys: [long, long] })['ssh.authorized_keys.root'], `${long}\n`);
});

test('neither user data, nor parameters, nor metadata of the operator are among them', () => {
  const secret = 'hunter2';
  const strings = planSystemdCredentials(
    instanceRecord({
      communication: true,
      userData: Buffer.from(secret).toString('base64'),
      vendorData: Buffer.from(`#!${secret}`).toString('base64'),
      metadata: { role: secret },
      osParameters: { a: secret },
      osParametersPrivate: { b: secret },
    }),
  );
  assert.doesNotMatch(strings.join('\n'), new RegExp(`${secret}|${btoa(secret)}`));
});
