import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  lifecycleEventBatch,
  type LifecycleEvent,
  type LifecycleProgress,
  NO_PROGRESS,
  parseInputValue,
  runLists,
} from '#shared/contract/lifecycle.ts';
import { advanceProgress, type ProgressView } from '#shared/contract/lifecycle-progress.ts';

const RUN = '11111111-1111-4111-8111-111111111111';
const BOOT = '22222222-2222-4222-8222-222222222222';
const COMMAND = '33333333-3333-4333-8333-333333333333';
const OTHER = '44444444-4444-4444-8444-444444444444';
const VIEW: ProgressView = {
  run: RUN,
  boot: ['01-one', '02-two'],
  decommission: ['01-leave'],
  command: COMMAND,
};
const SCRIPT = Buffer.from('#!/bin/sh\n').toString('base64');

/** Type of an event, or its own fields. */
type Word = LifecycleEvent['type'] | Record<string, unknown>;

function words(...given: readonly Word[]): LifecycleEvent[] {
  const events = given.map((word, index) => ({
    ...{ run: RUN, boot: BOOT, number: index + 1 },
    ...(typeof word === 'string' ? { type: word } : word),
  }));
  return lifecycleEventBatch.parse(events);
}

/** Returns the progress after the events, or the field of the first invalid event. */
function say(events: readonly LifecycleEvent[], from = NO_PROGRESS): LifecycleProgress | string {
  let now = from;
  for (const event of events) {
    const next = advanceProgress(now, event, VIEW, true);
    if ('refused' in next) return next.field;
    now = next;
  }
  return now;
}

const started = (entry: string): Word => ({ type: 'started', entry });
const finished = (entry: string, status = 0): Word => ({ type: 'finished', entry, status });
const BOOTED: readonly Word[] = [
  'booting',
  ...[started('boot/01-one'), finished('boot/01-one')],
  ...[started('boot/02-two'), finished('boot/02-two')],
];

void test('a guest whose boot list ends well is operational, and told so again and again', () => {
  const up = say(words(...BOOTED, 'operational', 'operational'));
  assert.ok(typeof up === 'object');
  assert.equal(up.state, 'operational');
  assert.equal(up.number, 7);
});

void test('operational is nothing to be said before the whole boot list ended well', () => {
  assert.equal(say(words('booting', 'operational')), 'type');
  assert.equal(say(words(...BOOTED.slice(0, 4), 'operational')), 'type');
  assert.equal(
    say(words(...BOOTED.slice(0, 4), finished('boot/02-two', 1), 'operational')),
    'type',
  );
});

void test('nothing of a list is started after what failed, twice, or out of its order', () => {
  assert.equal(say(words('booting', started('boot/02-two'))), 'entry');
  assert.equal(
    say(words('booting', started('boot/01-one'), started('boot/02-two'))),
    'entry',
    'while another runs',
  );
  const failed = ['booting', started('boot/01-one'), finished('boot/01-one', 3)] as const;
  assert.equal(say(words(...failed, started('boot/02-two'))), 'entry');
  assert.equal(
    say(words('booting', started('boot/01-one'), finished('boot/01-one'), started('boot/01-one'))),
    'entry',
  );
  assert.equal(say(words('booting', finished('boot/01-one'))), 'entry');
  assert.equal(say(words('booting', started('boot/03-none'))), 'entry');
});

void test('a stranded guest still decommissions, each time with its kind', () => {
  const stranded: readonly Word[] = [
    ...['booting' as const, started('boot/01-one'), finished('boot/01-one', 7)],
    'stranded',
  ];
  const leaving: readonly Word[] = [
    { type: 'decommissioning', kind: 'terminate' },
    ...[started('decommission/01-leave'), finished('decommission/01-leave')],
    'decommissioned',
  ];
  const gone = say(words(...stranded, ...leaving));
  assert.ok(typeof gone === 'object');
  assert.equal(gone.state, 'decommissioned');
  assert.equal(gone.kind, 'terminate');
});

void test('what never was up is not decommissioned', () => {
  assert.equal(say(words('booting', { type: 'decommissioning', kind: 'stop' })), 'type');
  assert.equal(say(words(...BOOTED, 'operational', 'decommissioned')), 'type');
});

void test('a script on demand is the one that is wanted, once', () => {
  const up = [...BOOTED, 'operational'] as const;
  const done = say(words(...up, started(COMMAND), finished(COMMAND, 5)));
  assert.ok(typeof done === 'object');
  assert.equal(done.state, 'operational');
  assert.deepEqual(done.last, { entry: COMMAND, status: 5 });
  assert.equal(say(words(...up, started(OTHER))), 'entry');
  assert.equal(say(words(...up, started(COMMAND), finished(COMMAND), started(COMMAND))), 'entry');
  assert.equal(say(words('booting', started(COMMAND))), 'entry');
});

void test('another run, another boot and a boot that does not begin with the first number are refused', () => {
  const first = words('booting');
  assert.equal(say([{ ...first[0]!, run: OTHER }]), 'run');
  assert.equal(say([...first, { ...words('booting', 'stranded')[1]!, boot: OTHER }]), 'boot');
  assert.equal(say([{ ...first[0]!, number: 2 }]), 'number');
});

void test('what was refused leaves out its number, and the host hears what comes after it', () => {
  const [booting, , , stranded, leaving] = words(
    ...['booting' as const, started('boot/99-x'), finished('boot/99-x')],
    ...['stranded' as const, { type: 'decommissioning', kind: 'stop' }],
  );
  const gone = say([booting!, stranded!, leaving!]);
  assert.ok(typeof gone === 'object');
  assert.equal(gone.state, 'decommissioning');
  assert.equal(say([booting!, leaving!]), 'type', 'the order of states counts as ever');
});

void test('a script that runs may end while another one is wanted', () => {
  const events = words(...BOOTED, 'operational', started(COMMAND));
  const running = say(events);
  assert.ok(typeof running === 'object');
  const end = { ...words(finished(COMMAND, 143))[0]!, number: events.length + 1 };
  const ended = advanceProgress(running, end, { ...VIEW, command: OTHER }, true);
  assert.ok(!('refused' in ended));
  assert.deepEqual(ended.last, { entry: COMMAND, status: 143 });
  const next = { ...words(started(OTHER))[0]!, number: events.length + 2 };
  assert.ok(!('refused' in advanceProgress(ended, next, { ...VIEW, command: OTHER }, true)));
});

void test('a boot begins once, and what was told twice counts once', () => {
  const events = words('booting', started('boot/01-one'));
  const once = say(events);
  assert.ok(typeof once === 'object');
  assert.deepEqual(say(events, once), once);
  assert.equal(say([{ ...events[0]!, number: 3 }], once), 'type');
  const again = say([{ ...events[0]!, boot: OTHER }], once);
  assert.ok(typeof again === 'object');
  assert.deepEqual(again, { ...NO_PROGRESS, boot: OTHER, number: 1 });
});

void test('an agent that was restarted alone is operational again without a boot list', () => {
  const restart = { type: 'decommissioning', kind: 'service_restart' } as const;
  const decommissioned = [...BOOTED, 'operational', restart, 'decommissioned'] as const;
  const up = say(words(...decommissioned, 'operational'));
  assert.ok(typeof up === 'object');
  assert.equal(up.state, 'operational');
  const stop = [...BOOTED, 'operational', { ...restart, kind: 'stop' }, 'decommissioned'] as const;
  assert.equal(say(words(...stop, 'operational')), 'type');
});

void test('after a loss a guest goes on where it is, among scripts that it has', () => {
  const [, , , , , up] = words(...BOOTED, 'operational');
  const later = advanceProgress({ ...NO_PROGRESS, boot: BOOT, number: 2 }, up!, VIEW, false);
  assert.ok(!('refused' in later));
  assert.equal(later.state, 'operational');
  const [foreign] = words({ type: 'started', entry: 'boot/99-x', number: 9 });
  assert.ok('refused' in advanceProgress(NO_PROGRESS, foreign!, VIEW, false));
});

void test('an absurd status and foreign fields are no events', () => {
  for (const status of [-1, 256, 1.5, '0', null])
    assert.throws(() => words({ type: 'finished', entry: COMMAND, status }), /status/);
  assert.throws(() => words({ type: 'operational', more: 1 }), /more/);
  assert.throws(() => lifecycleEventBatch.parse([]));
  assert.throws(() => words({ type: 'started', entry: 'boot/../x' }), /entry/);
});

void test('an input has one of four forms, and a refusal does not show its value', () => {
  assert.deepEqual(parseInputValue('text:a:b\n'), { from: 'text', text: 'a:b\n' });
  assert.deepEqual(parseInputValue('cred:DB_PASSWORD'), { from: 'cred', name: 'DB_PASSWORD' });
  assert.deepEqual(parseInputValue('blank'), { from: 'text', text: '' });
  assert.deepEqual(parseInputValue('ignore'), { from: 'ignore' });
  for (const text of ['key:hush', 'hush', 'cred:hush hush', ''])
    assert.throws(
      () => parseInputValue(text),
      (error: Error) => !error.message.includes('hush'),
    );
});

void test('run lists are refused for what no guest can run, by its place', () => {
  const ofBoot = (...boot: readonly unknown[]): unknown[] =>
    runLists.safeParse({ boot }).error?.issues.map(({ path }) => path.join('.')) ?? [];
  assert.deepEqual(ofBoot({ name: 'a', content: SCRIPT }), []);
  const plain = Buffer.from('echo\n').toString('base64');
  assert.deepEqual(ofBoot({ name: 'a', content: plain }), ['boot.0.content']);
  assert.deepEqual(ofBoot({ name: '../a', content: SCRIPT }), ['boot.0.name']);
  assert.deepEqual(ofBoot({ name: 'a', content: SCRIPT }, { name: 'a', content: SCRIPT }), []);
  const large = Buffer.alloc(1024 * 1024 + 1, '#!x').toString('base64');
  assert.deepEqual(ofBoot({ name: 'a', content: large }), ['']);
  const many = Array.from({ length: 40 }, (_, index) => ({ name: `s${index}`, content: SCRIPT }));
  assert.equal(runLists.safeParse({ boot: many, operational: many }).success, false);
});

test('a script with CR LF is refused with the command that converts it', () => {
  const listsOf = (text: string): unknown => ({
    boot: [{ name: 'a', content: Buffer.from(text).toString('base64') }],
  });
  assert.ok(runLists.safeParse(listsOf('#!/bin/sh\necho "\r"\r\n')).success);
  for (const text of ['#!/bin/sh\r\necho\r\n', '#!/bin/sh\r\n']) {
    const { error } = runLists.safeParse(listsOf(text));
    assert.match(error?.issues[0]?.message ?? '', /CR LF.*sed -i "s\/\\r\$\/\/" FILE/);
  }
});
