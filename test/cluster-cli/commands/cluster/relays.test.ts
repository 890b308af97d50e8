import assert from 'node:assert/strict';
import { test } from 'node:test';
import { relaySettings } from '#shared/contract/relay.ts';
import { describeRelays, parseRelays } from '../../../../cluster-cli/commands/cluster/relays.ts';

const URL = 'https://api.example.com/v1';

test('a relay is a URL with settings, in the syntax of other lists', () => {
  const { llm = null, old } = parseRelays([
    `llm=${URL},auth=header:X-Api-Key,access=all,methods=get+POST,paths=/a+/b\\,c,rate=5,max-size=10M,timeout=60`,
    'old=none',
  ]);
  assert.deepEqual(relaySettings.parse(llm), {
    ...{ url: URL, auth: { kind: 'header', name: 'x-api-key' }, access: 'all' },
    ...{ methods: ['GET', 'POST'], paths: ['/a', '/b,c'], rate: 5, maxBytes: 10 * 1024 ** 2 },
    timeoutS: 60,
  });
  assert.equal(old, null);
  const [basic] = Object.values(parseRelays([`a=${URL},auth=basic:me:too`]));
  assert.deepEqual(basic?.auth, { kind: 'basic', user: 'me:too' });
  assert.equal(relaySettings.safeParse(basic).success, false);
  assert.deepEqual(parseRelays([`a=${URL}`]), {
    a: { url: URL, auth: { kind: 'bearer' }, access: 'tagged' },
  });
});

test('a wrong setting is refused by its name', () => {
  for (const [text, problem] of [
    ['', /is not NAME=URL/],
    ['llm', /is not NAME=URL/],
    [`Llm=${URL}`, /'Llm' is not a name/],
    [`__proto__=${URL}`, /'__proto__' is not a name/],
    [`llm=${URL},auth=digest`, /'auth=digest' is not bearer/],
    [`llm=${URL},auth=basic:`, /is not bearer/],
    [`llm=${URL},methods=GET+TRACE`, /has a method other than/],
    [`llm=${URL},access=some`, /is not tagged or all/],
    [`llm=${URL},rate=many`, /is not a whole number/],
    [`llm=${URL},constructor=1`, /'constructor=1' is not a setting/],
    [`llm=${URL},paths`, /'paths' is not a setting/],
    [`llm=@/etc/passwd`, /is not NAME=URL/],
  ] as const)
    assert.throws(() => parseRelays([text]), { code: 'USAGE', message: problem }, text);
});

test('info names a missing secret with the command that gives it', () => {
  const relay = { url: URL, auth: { kind: 'bearer' }, access: 'tagged' } as const;
  const described = describeRelays({ relays: { a: relay, b: relay }, relaysWithoutSecret: ['b'] });
  const [first, second] = described.children ?? [];
  assert.equal(first?.children?.[0]?.value, 'in the memory of this node');
  assert.equal(
    second?.children?.[0]?.value,
    'missing on this node: gnt-cluster set-relay-secret b',
  );
});
