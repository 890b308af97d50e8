import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerDhcp } from '../../../metad/dhcp/answer.ts';
import { parseDhcpRequest } from '../../../metad/dhcp/codec.ts';
import {
  FIRMWARE_RECORDINGS,
  loadDhcpRecordings,
  RECORDED_CLIENT,
} from '../support/dhcp-recording.ts';
import { decodeDhcpReply } from '../support/dhcp-fixture.ts';

/** Answers to recorded messages of real clients (test/metad/record-dhcp.ts). */

const ANSWERS: Readonly<Record<string, string | null>> = {
  discover: 'offer',
  request: 'ack',
  release: null,
};
/** The operating system gets none of its firmware's boot options. */
const GUEST = {
  ...RECORDED_CLIENT,
  boot: { script: 'http://169.254.169.254/script', loader: 'http://169.254.169.254/loader' },
};

for (const [name, { client, messages }] of await loadDhcpRecordings()) {
  test(`${name}: messages of ${client} are answered with the address, one route and no boot option`, () => {
    const types: string[] = [];
    for (const { hex } of messages) {
      const request = parseDhcpRequest(Buffer.from(hex, 'hex'));
      assert.ok(request, hex);
      types.push(request.type);
      const answer = answerDhcp(GUEST, request);
      const expected = ANSWERS[request.type];
      if (expected === null) {
        assert.equal(answer, null);
        continue;
      }
      assert.ok(answer, request.type);
      const reply = decodeDhcpReply(answer.bytes);
      assert.equal(reply.type, expected);
      assert.equal(reply.transactionId, request.transactionId);
      assert.equal(reply.yourAddress, RECORDED_CLIENT.ip);
      assert.equal(reply.mac, RECORDED_CLIENT.mac);
      assert.deepEqual([...(reply.options.get(121) ?? [])], [32, 169, 254, 169, 254, 0, 0, 0, 0]);
      for (const code of [3, 6, 33, 60, 66, 67, 175])
        assert.equal(reply.options.get(code), undefined, `${code}`);
      assert.equal(answer.destination, '255.255.255.255');
    }
    assert.deepEqual(types.slice(0, 2), ['discover', 'request'], client);
  });
}

test('every supported DHCP client has a recording', async () => {
  const names = [...(await loadDhcpRecordings()).keys()];
  for (const program of ['networkd', 'dhcpcd', 'network-manager', 'ifupdown'])
    assert.ok(
      names.some((name) => name.startsWith(program)),
      program,
    );
});

test('the ROM of QEMU’s NIC gets the address of its script, as BIOS and as EFI', async () => {
  const recordings = await loadDhcpRecordings(FIRMWARE_RECORDINGS);
  const ofRom = [...recordings].filter(([name]) => name.startsWith('ipxe-'));
  const architectures = ofRom.map(([name, { messages }]) => {
    const types = messages.map(({ hex }) => {
      const request = parseDhcpRequest(Buffer.from(hex, 'hex'));
      assert.ok(request?.firmware, name);
      const answer = answerDhcp({ ...GUEST, mac: request.mac, ip: '169.254.0.1' }, request);
      assert.ok(answer, name);
      const { options } = decodeDhcpReply(answer.bytes);
      assert.equal(options.get(67)?.toString(), GUEST.boot.script);
      assert.deepEqual([...(options.get(175) ?? [])], [0xb0, 1, 1]);
      for (const code of [3, 6, 60]) assert.equal(options.get(code), undefined);
      return request.type;
    });
    assert.deepEqual(types, ['discover', 'request'], `${name} waits for nobody else`);
    return [name, parseDhcpRequest(Buffer.from(messages[0]?.hex ?? '', 'hex'))?.firmware];
  });
  assert.deepEqual(Object.fromEntries(architectures), {
    'ipxe-bios': { vendorClass: 'PXEClient', userClasses: ['iPXE'], architecture: 0 },
    'ipxe-efi': { vendorClass: 'PXEClient', userClasses: ['iPXE'], architecture: 7 },
  });
});

test('OVMF gets the address of the loader when it boots by HTTP, and no boot option when it boots by PXE', async () => {
  const recordings = await loadDhcpRecordings(FIRMWARE_RECORDINGS);
  const askedFor = (name: string) =>
    (recordings.get(name)?.messages ?? []).map(({ hex }) => {
      const request = parseDhcpRequest(Buffer.from(hex, 'hex'));
      assert.ok(request?.firmware, name);
      const answer = answerDhcp({ ...GUEST, mac: request.mac }, request);
      assert.equal(answer?.destination, '255.255.255.255');
      const { options } = decodeDhcpReply(answer.bytes);
      const told = [60, 67].map((code) => options.get(code)?.toString());
      return [request.type, request.firmware.architecture, ...told];
    });
  // The firmware needs both options in both answers.
  const told = ['HTTPClient', GUEST.boot.loader];
  assert.deepEqual(askedFor('ovmf-http'), [
    ['discover', 16, ...told],
    ['request', 16, ...told],
  ]);
  const ofPxe = askedFor('ovmf-pxe');
  assert.equal(ofPxe.length, 4);
  for (const each of ofPxe) assert.deepEqual(each, ['discover', 7, undefined, undefined]);
});
