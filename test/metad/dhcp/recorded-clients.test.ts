import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerDhcp } from '../../../metad/dhcp/answer.ts';
import { parseDhcpRequest } from '../../../metad/dhcp/codec.ts';
import { loadDhcpRecordings, RECORDED_CLIENT } from '../support/dhcp-recording.ts';
import { decodeDhcpReply } from '../support/dhcp-fixture.ts';

/** What real clients sent, as test/metad/record-dhcp.ts wrote it down, answered again. */

const ANSWERS: Readonly<Record<string, string | null>> = {
  discover: 'offer',
  request: 'ack',
  release: null,
};

for (const [name, { client, messages }] of await loadDhcpRecordings()) {
  test(`${name}: what ${client} sends is answered with the address and the one route`, () => {
    const types: string[] = [];
    for (const { hex } of messages) {
      const request = parseDhcpRequest(Buffer.from(hex, 'hex'));
      assert.ok(request, hex);
      types.push(request.type);
      const answer = answerDhcp(RECORDED_CLIENT, request);
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
      for (const code of [3, 6, 33]) assert.equal(reply.options.get(code), undefined, `${code}`);
      assert.equal(answer.destination, '255.255.255.255');
    }
    assert.deepEqual(types.slice(0, 2), ['discover', 'request'], client);
  });
}

test('each of the clients that guests have was recorded', async () => {
  const names = [...(await loadDhcpRecordings()).keys()];
  for (const program of ['networkd', 'dhcpcd', 'network-manager', 'ifupdown'])
    assert.ok(
      names.some((name) => name.startsWith(program)),
      program,
    );
});
