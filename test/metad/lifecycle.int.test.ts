import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { NO_PROGRESS, type ViewLifecycle } from '#shared/contract/lifecycle.ts';
import { ChannelLab, type Guest } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { askFromGuest } from './support/guest-http.ts';
import { lifecycleOf, RUN, scriptOf } from './support/lifecycle-fixture.ts';
import { exampleView } from './support/view-fixture.ts';

/** Run lists as a guest sees them, and its reports about them. */

const BOOT = '22222222-2222-4222-8222-222222222222';
const COMMAND = '33333333-3333-4333-8333-333333333333';
const lists: ViewLifecycle['lists'] = {
  boot: [
    scriptOf('01-all', 'true'),
    scriptOf('02-own', 'true', { OWN: { parameter: 'rootpw' }, Q: { text: "it's" } }),
  ],
  operational: [scriptOf('01-now', 'true')],
  decommission: [],
};

let lab: ChannelLab;
let guest: Guest;
let revision = 1;
const view = exampleView();

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
});
after(() => lab[Symbol.asyncDispose]());
beforeEach(async () => {
  // metad keeps the progress of a run until the instance is removed.
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await serve(lifecycleOf({ lists }));
});

async function serve(
  lifecycle: ViewLifecycle,
  overrides: Partial<typeof view> = {},
  query: '' | '?guest=up' = '',
): Promise<void> {
  revision += 1;
  const answer = await lab.put({ ...view, ...overrides, revision, lifecycle }, query);
  assert.equal(answer.status, 204, answer.body.toString());
}

async function get(path: string): Promise<{ readonly status: number; readonly text: string }> {
  const { status, body } = await askFromGuest(guest.namespace, `/ganeti/latest/${path}`);
  return { status, text: body.toString() };
}

async function post(path: string, body: string | Buffer): Promise<string> {
  const options = { method: 'POST', body };
  const answer = await askFromGuest(guest.namespace, `/ganeti/latest/lifecycle/${path}`, options);
  return `${answer.status} ${answer.body.toString()}`.trim();
}

/** Posts events; run, boot and number follow from their order. */
async function say(first: number, ...events: readonly object[]): Promise<string> {
  const batch = events.map((event, index) => ({
    ...{ run: RUN, boot: BOOT, number: first + index },
    ...event,
  }));
  return await post('events', JSON.stringify(batch));
}

async function told(since: number): Promise<readonly string[]> {
  const mark = `mark ${revision}`;
  const options = { method: 'POST', body: mark };
  await askFromGuest(guest.namespace, '/ganeti/latest/ready', options);
  const events = await eventsUntil(lab, since, (some) =>
    some.some(({ event }) => event.type === 'ready' && event.text === mark),
  );
  return events.flatMap(({ event }) => {
    if (event.type === 'lifecycle') return [`${event.event.type} ${event.progress.state}`];
    return event.type === 'lifecycle-output' ? [`${event.text}+${event.lostBytes}`] : [];
  });
}

async function now(): Promise<number> {
  const { body } = await lab.control('GET', '/v1/status');
  return (JSON.parse(body.toString()) as { lastSequence: number }).lastSequence;
}

const BOOTED = [
  { type: 'booting' },
  { type: 'started', entry: 'boot/01-all' },
  { type: 'finished', entry: 'boot/01-all', status: 0 },
  { type: 'started', entry: 'boot/02-own' },
  { type: 'finished', entry: 'boot/02-own', status: 0 },
  { type: 'operational' },
];

test('listed scripts, variables, attachments and the agent can be read', async () => {
  assert.equal(
    (await get('run-lists/')).text,
    ['boot/', 'boot.bundle', 'boot.env', 'operational/', 'operational.bundle', 'operational.env', ''].join('\n'),
  ); // prettier-ignore
  assert.equal((await get('run-lists/boot/')).text, '01-all\n02-own\n');
  assert.equal((await get('run-lists/boot/01-all')).text, '#!/bin/sh\ntrue\n');
  assert.equal(
    (await get('run-lists/operational.env')).text,
    "GREETING='hello'\nhostkey='KEY123'\n",
  );
  const boot = [
    'case "${GNT_SCRIPT-}" in',
    ...["'01-all')", "GREETING='hello'", "hostkey='KEY123'", ';;'],
    ...["'02-own')", "OWN='S3CRET'", `Q='it'\\''s'`, ';;', 'esac', ''],
  ];
  assert.equal((await get('run-lists/boot.env')).text, boot.join('\n'));
  assert.equal((await get('attachments/a%20file')).text, 'attached');
  assert.equal((await get('attachments.bundle')).text, '      27        8 a file\n\nattached');
  const { text: bundle } = await get('run-lists/boot.bundle');
  const [first = '', second = ''] = bundle.split('\n');
  for (const [line, name] of [[first, '01-all'], [second, '02-own']] as const) {
    const [, from, size, path] = /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? [];
    assert.equal(path, name);
    assert.equal(
      bundle.slice(Number(from) - 1, Number(from) - 1 + Number(size)),
      (await get(`run-lists/boot/${name}`)).text,
    );
  } // prettier-ignore
  assert.match((await get('lifecycle.json')).text, /^ {2}"state": "booting",$/m);
  const { text: enable } = await get('guest/enable');
  assert.ok(enable.includes((await get('guest/agent')).text));
  assert.doesNotMatch(enable, /@AGENT@|S3CRET|KEY123/);
});

test('a lost secret is named, and values that are not public are not shown to the operator', async () => {
  const osParameters = {
    ...view.osParameters,
    rootpw: { value: null, visibility: 'secret' as const },
  };
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await serve(lifecycleOf({ lists }), { osParameters });
  // Scripts that do not need the lost secret run.
  const boot = await get('run-lists/boot.env');
  assert.equal(boot.status, 200);
  assert.match(
    boot.text,
    /\n'01-all'\)\nGREETING='hello'\nhostkey='KEY123'\n;;\n'02-own'\)\necho 'the host has lost the secret OS parameters rootpw: [^']*'\nexit 126\n;;\nesac\n$/,
  );
  const needing = { ...lists, boot: lists.boot.slice(1) };
  await serve(lifecycleOf({ lists: needing }), { osParameters });
  const lost = await get('run-lists/boot.env');
  assert.equal(lost.status, 410);
  assert.match(lost.text, /secret OS parameters rootpw:/);
  assert.equal((await get('run-lists/operational.env')).status, 200);
  const path = `/v1/instances/${view.uuid}/tree/ganeti/latest/run-lists/operational.env`;
  assert.match((await lab.control('GET', path)).body.toString(), /^hostkey='<redacted>'$/m);
});

test('the variables of a command override those of its script', async () => {
  const next = { do: 'run', entry: COMMAND, script: '01-now' } as const;
  const commandEnv = { GREETING: { text: 'again' } };
  await serve({ ...lifecycleOf({ lists, next }), commandEnv });
  const { text } = await get('run-lists/operational.env');
  assert.match(text, /^GREETING='again'\nhostkey='KEY123'$/m);
  const path = `/v1/instances/${view.uuid}/tree/ganeti/latest/run-lists/operational.env`;
  const shown = (await lab.control('GET', path)).body.toString();
  assert.match(shown, /^GREETING='<redacted>'\nhostkey='<redacted>'$/m);
  assert.doesNotMatch(shown, /again|hello/);
});

test('the variables of a command are masked in its output, also after it is cancelled', async () => {
  const next = { do: 'run', entry: COMMAND, script: '01-now' } as const;
  const up = { lists, state: 'operational' } as const;
  await serve({ ...lifecycleOf({ ...up, next }), commandEnv: { WORD: { text: 'hush-hush' } } });
  assert.equal(await say(1, ...BOOTED, { type: 'started', entry: COMMAND }), '204');
  const since = await now();
  const output = (offset: number, text: string): Promise<string> =>
    post(`output?entry=${COMMAND}&offset=${offset}`, text);
  assert.equal(await output(0, '+ WORD=hush-hush\n'), '204');
  await serve(lifecycleOf(up));
  assert.equal(await output(17, 'hush-hush\n'), '204');
  assert.equal(await say(8, { type: 'finished', entry: COMMAND, status: 143 }), '204');
  assert.equal(await output(27, 'hush-hush\n'), '204');
  assert.deepEqual(await told(since), [
    ...['+ WORD=<redacted>\n+0', '<redacted>\n+0', 'finished operational', '<redacted>\n+0'],
  ]);
});

test('each lifecycle event of a guest is reported once, and events without a change are not', async () => {
  const since = await now();
  assert.equal(await say(1, ...BOOTED), '204');
  assert.equal(await say(1, ...BOOTED), '204');
  // Events are repeated while the host's view lacks them.
  assert.equal(await say(7, { type: 'operational' }), '204');
  await serve(lifecycleOf({ lists, state: 'operational' }));
  for (let number = 8; number < 30; number++)
    assert.equal(await say(number, { type: 'operational' }), '204');
  assert.deepEqual(await told(since), [
    ...Array.from({ length: 5 }, (_, at) => `${BOOTED[at]?.type} booting`),
    ...['operational operational', 'operational operational'],
  ]);
});

test('a new event counts more against the rate limit than a repeated event', async () => {
  const limits = { ...view.limits, requestsPerSecond: 0.01, burst: 30 };
  await serve(lifecycleOf({ lists, state: 'operational' }), { limits });
  assert.equal(await say(1, ...BOOTED), '204');
  assert.match(await say(7, { type: 'operational' }), /^429/);
});

test('batches with wrong order, unknown entries, other runs or invalid values are refused by field as a whole', async () => {
  const since = await now();
  const [booting, started] = BOOTED;
  for (const [events, refusal] of [
    [[booting, { type: 'operational' }], '409 1.type: the boot list has not finished'],
    [
      [booting, { type: 'started', entry: 'boot/02-own' }],
      '409 1.entry: expected boot/01-all next',
    ],
    [
      [booting, { type: 'started', entry: 'boot/03-none' }],
      '409 1.entry: this instance has no such script',
    ],
    [
      [booting, { type: 'started', entry: COMMAND }],
      '409 1.entry: this instance has no such script',
    ],
    [[booting, { ...started, run: COMMAND }], '409 1.run: the event belongs to another run'],
    [
      [booting, { ...started, boot: COMMAND }],
      '409 1.boot: a batch must contain events of one boot only',
    ],
    [
      [booting, { ...booting, boot: COMMAND, number: 1 }],
      '409 1.boot: a batch must contain events of one boot only',
    ],
    [[{ ...started, number: 1 }], '409 0.number: the first event of a boot must be booting'],
    [[booting, { ...started, status: 0 }], '400 1: Unrecognized key: "status"'],
    [[{ type: 'finished', entry: 'boot/01-all', status: 256 }], /^400 0\.status: /],
    [[{ type: 'finished', entry: '../etc', status: 0 }], /^400 0\.entry: /],
    [[{ type: 'failed' }], /^400 0\.type: /],
    [[{ ...booting, number: 0 }], /^400 0\.number: /],
    [[], /^400 \(top level\): /],
  ] as const) {
    const answer = await say(1, ...(events as readonly object[]));
    if (typeof refusal === 'string') assert.equal(answer, refusal);
    else assert.match(answer, refusal);
  }
  assert.equal(await post('events', '{'), '400 (top level): not JSON');
  assert.match(
    await post('events', JSON.stringify(Array(257).fill({}))),
    /^400 \(top level\): more than 256/,
  );
  assert.match(await post('events', ' '.repeat(262_145)), /^413 /);
  assert.deepEqual(await told(since), []);
});

test('output is masked, in whole lines, each byte once, and before the end of its script', async () => {
  const since = await now();
  assert.match(await post('output?entry=boot/01-all&offset=0', 'x'), /^409 entry: /);
  assert.equal(await say(1, ...BOOTED.slice(0, 2)), '204');
  const output = (offset: number, text: string): Promise<string> =>
    post(`output?entry=boot/01-all&offset=${offset}`, text);
  assert.equal(await output(0, 'one\nit is S3C'), '204');
  // The output was posted again after its answer was lost.
  assert.equal(await output(4, 'it is S3CRET and KEY'), '204');
  assert.equal(await output(24, '123\nlast'), '204');
  assert.equal(await output(24, '123\nlast'), '204');
  assert.equal(await say(3, ...BOOTED.slice(2, 3)), '204');
  assert.deepEqual(await told(since), [
    ...['booting booting', 'started booting', 'one\n+0'],
    ...['it is <redacted> and <redacted>\n+0', 'last+0', 'finished booting'],
  ]);
});

test('output beyond its limit and skipped bytes are counted', async () => {
  const since = await now();
  assert.equal(await say(1, ...BOOTED.slice(0, 2)), '204');
  const MIB4 = 4 * 1024 * 1024;
  const at = (offset: number, text: string): Promise<string> =>
    post(`output?entry=boot/01-all&offset=${offset}`, text);
  assert.equal(await at(10, 'ten\n'), '204');
  assert.equal(await at(MIB4 - 2, 'a\nbcd\n'), '204');
  assert.equal(await at(MIB4 + 1000, 'x'), '204');
  assert.match(await at(2 ** 53, 'x'), /^400 offset: /);
  assert.match(await at(0, 'x'.repeat(65_537)), /^413 /);
  assert.match(await post('output?entry=..%2f&offset=0', 'x'), /^400 entry: /);
  assert.match(await post('output?entry=boot/01-all&offset=-1', 'x'), /^400 offset: /);
  assert.equal(await say(3, ...BOOTED.slice(2, 3)), '204');
  const lost = MIB4 - 16;
  assert.deepEqual((await told(since)).slice(2), [
    ...['ten\n+10', `a\n+${lost + 4}`, '+997'],
    'finished booting',
  ]);
});

test('a restarted metad accepts the next event of a boot whose earlier events it missed', async () => {
  await lab.stopMetad('SIGKILL');
  await lab.startMetad();
  await serve(lifecycleOf({ lists }));
  const since = await now();
  assert.equal(await say(6, { type: 'operational' }), '204');
  assert.match(await say(7, { type: 'decommissioned' }), /^409 0\.type/);
  assert.deepEqual(await told(since), ['operational operational']);
});

test('output is redacted while a secret is lost, and masked after the secret is given again', async () => {
  const hush = (value: string | null) => ({
    osParameters: { ...view.osParameters, hush: { value, visibility: 'secret' as const } },
  });
  const progress = { ...NO_PROGRESS, boot: BOOT, number: 2, entry: 'boot/01-all' };
  const say = (offset: number): Promise<string> =>
    post(`output?entry=boot/01-all&offset=${offset}`, 'it is s3cret-value\n\n');
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await serve({ ...lifecycleOf({ lists }), progress }, hush(null), '?guest=up');
  const since = await now();
  assert.equal(await say(0), '204');
  await serve({ ...lifecycleOf({ lists }), progress }, hush('s3cret-value'), '?guest=up');
  assert.equal(await say(20), '204');
  assert.deepEqual(await told(since), ['<redacted>\n\n+0', 'it is <redacted>\n\n+0']);
});

test('a waiting guest gets the host’s next action at once, and 404 without run lists', async () => {
  const { etag } = (await askFromGuest(guest.namespace, '/ganeti/latest/lifecycle.json')).headers;
  const path = `lifecycle.json?wait_for_change=true&last_etag=${encodeURIComponent(etag ?? '')}`;
  const waiting = get(path);
  await serve(lifecycleOf({ lists, next: { do: 'reboot', entry: COMMAND } }));
  assert.match((await waiting).text, /^ {4}"do": "reboot",$/m);
  revision += 1;
  await lab.put({ ...view, revision });
  for (const gone of ['lifecycle.json', 'run-lists/', 'guest/enable', 'guest/agent'])
    assert.equal((await get(gone)).status, 404, gone);
  assert.match(await say(1, { type: 'booting' }), /^404/);
});
