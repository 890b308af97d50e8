import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type LifecycleEvent,
  type LifecycleRecord,
  type LifecycleState,
  NO_PROGRESS,
} from '#shared/contract/lifecycle.ts';
import { advanceProgress } from '#shared/contract/lifecycle-progress.ts';
import { lifecycleTermsOf } from '../../../../noded/instances/run-lists/lifecycle-entry.ts';
import {
  beginRun,
  type LifecycleHappening,
  type LifecycleTerms,
  planLifecycle,
} from '../../../../noded/instances/run-lists/plan-lifecycle.ts';

const RUN = '11111111-1111-4111-8111-111111111111';
const BOOT = '22222222-2222-4222-8222-222222222222';
const COMMAND = '33333333-3333-4333-8333-333333333333';
const TERMS: LifecycleTerms = {
  ...{ nowMs: 10_000, decommissionTimeoutS: 180, bootTimeoutS: null, hasDecommissionList: true },
};

/** 300 s after the limit of the list. */
const CUT_MS = TERMS.nowMs + 480_000;

/** A word of the guest, or something else that happens. */
type Word =
  | LifecycleEvent['type']
  | readonly ['started' | 'finished', string, number?]
  | readonly ['decommissioning', 'reboot' | 'stop' | 'terminate' | 'service_restart']
  | Exclude<LifecycleHappening, { event: LifecycleEvent }>;

interface Story {
  readonly record: LifecycleRecord;
  readonly audit: readonly string[];
  /** How often the guest is shown something new. */
  readonly shown: number;
  readonly isCut: boolean;
}

function tell(words: readonly Word[], terms = TERMS): Story {
  let record = beginRun(RUN, 1, terms);
  const audit: string[] = [];
  let shown = 0;
  let isCut = false;
  let sequence = 100;
  for (const word of words) {
    const happening = hear(record, word, ++sequence);
    const step = planLifecycle(record, happening, terms);
    record = step.record;
    for (const action of step.actions) {
      if (action.do === 'audit') audit.push(action.line);
      if (action.do === 'publish') shown += 1;
      if (action.do === 'cut-power') isCut = true;
    }
  }
  return { record, audit, shown, isCut };
}

function hear({ progress }: LifecycleRecord, word: Word, sequence: number): LifecycleHappening {
  if (typeof word === 'object' && 'type' in word) return word;
  const [type, second, status = 0] = typeof word === 'string' ? [word] : word;
  const event = {
    ...{ type, run: RUN, boot: BOOT, number: progress.number + 1 },
    ...((type === 'started' || type === 'finished') && { entry: second }),
    ...(type === 'finished' && { status }),
    ...(type === 'decommissioning' && { kind: second }),
  } as LifecycleEvent;
  const boot = type === 'booting' ? { ...event, number: 1 } : event;
  const view = { run: RUN, boot: ['01-a'], decommission: ['01-z'], command: COMMAND };
  const next = advanceProgress(progress, boot, view, false);
  assert.ok(!('refused' in next), JSON.stringify(next));
  return { event: boot, progress: next, sequence };
}

const UP: readonly Word[] = [
  ...(['booting', ['started', 'boot/01-a'], ['finished', 'boot/01-a']] as const),
  'operational',
];
const STRANDED: readonly Word[] = [
  ...(['booting', ['started', 'boot/01-a'], ['finished', 'boot/01-a', 3]] as const),
  'stranded',
];

const table: readonly (readonly [string, readonly Word[], LifecycleState])[] = [
  ['a guest that said nothing boots', [], 'booting'],
  ['its first word changes nothing about that', ['booting'], 'booting'],
  ['its boot list ended well', UP, 'operational'],
  ['a script of it failed', STRANDED, 'stranded'],
  ['it goes down', [...UP, ['decommissioning', 'stop']], 'decommissioning'],
  ['it goes down stranded', [...STRANDED, ['decommissioning', 'stop']], 'decommissioning'],
  ['it went down', [...UP, ['decommissioning', 'stop'], 'decommissioned'], 'decommissioned'],
  [
    'it is off after that',
    [...UP, ['decommissioning', 'stop'], 'decommissioned', { type: 'gone' }],
    'decommissioned',
  ],
  ['it is off before', [...UP, ['decommissioning', 'stop'], { type: 'gone' }], 'failed'],
  ['it is off without a word', [...UP, { type: 'gone' }], 'failed'],
  [
    'it boots again',
    [...UP, ['decommissioning', 'reboot'], 'decommissioned', 'booting'],
    'booting',
  ],
  ['it boots again without a word of its end', [...UP, 'booting'], 'booting'],
  ['its reset button is pressed', [...UP, { type: 'reset' }], 'booting'],
  [
    'its agent alone is restarted',
    [...UP, ['decommissioning', 'service_restart'], 'decommissioned', 'operational'],
    'operational',
  ],
];
for (const [what, words, state] of table) {
  void test(`${what}: ${state}`, () => {
    assert.equal(tell(words).record.state, state);
  });
}

void test('without a decommission list nothing is missing at the end of a machine', () => {
  const terms = { ...TERMS, hasDecommissionList: false };
  assert.equal(tell([...UP, { type: 'gone' }], terms).record.state, 'decommissioned');
});

void test('script and exit status are in the record, and why a guest is stranded', () => {
  const { record } = tell(STRANDED);
  assert.equal(record.script, 'boot/01-a');
  assert.equal(record.exitStatus, 3);
  assert.equal(record.reason, 'boot/01-a ended with exit status 3');
});

void test('the audit tells each script, its end, and a stranded guest', () => {
  assert.deepEqual(tell([...STRANDED, ['started', COMMAND], ['finished', COMMAND]]).audit, [
    '*RS> Booting',
    '*RS> RightScript: boot/01-a',
    '*RS> Aborted: boot/01-a, exit status 3',
    '*RS> Stranded: boot/01-a ended with exit status 3',
    `*RS> RightScript: ${COMMAND}`,
    `*RS> Completed: ${COMMAND}`,
  ]);
});

void test('the deadline begins with the first word of going down, far behind the limit of the list, and the power is cut at it', () => {
  const going = [...UP, ['decommissioning', 'stop']] as const;
  const { record, isCut } = tell([...going, ['decommissioning', 'reboot']]);
  assert.equal(record.deadlineMs, CUT_MS);
  assert.equal(record.kind, 'reboot');
  assert.equal(isCut, false);
  const late = planLifecycle(record, { type: 'deadline' }, { ...TERMS, nowMs: CUT_MS });
  assert.equal(late.record.state, 'failed');
  assert.match(late.record.reason ?? '', /180 s/);
  assert.ok(late.actions.some((action) => action.do === 'cut-power'));
  const early = planLifecycle(record, { type: 'deadline' }, { ...TERMS, nowMs: CUT_MS - 1 });
  assert.equal(early.record, record);
});

void test('a list that the guest ended at its limit has failed, and the guest has all its time to go down', () => {
  const going = tell([...UP, ['decommissioning', 'stop']]).record;
  const heard = hear(going, 'decommissioned', going.sequence + 1);
  assert.ok('event' in heard && heard.event.type === 'decommissioned');
  const event = { ...heard.event, timedOut: true } as const;
  const { record, actions } = planLifecycle(going, { ...heard, event }, TERMS);
  assert.deepEqual(
    [record.state, record.kind, record.deadlineMs, record.reason],
    ['failed', 'stop', null, 'its decommission list did not end within 180 s'],
  );
  assert.ok(!actions.some((action) => action.do === 'cut-power'));
  assert.equal(planLifecycle(record, { type: 'gone' }, TERMS).record.reason, record.reason);
});

void test('a machine that ends after the limit, without a word, ended its list late', () => {
  const { record } = tell([...UP, ['decommissioning', 'stop']]);
  const reasonAt = (nowMs: number): string | null =>
    planLifecycle(record, { type: 'gone' }, { ...TERMS, nowMs }).record.reason;
  assert.match(reasonAt(189_999) ?? '', /its QEMU process ended before/);
  assert.match(reasonAt(190_000) ?? '', /did not end within 180 s/);
});

void test('a stranded guest whose agent alone was restarted keeps its power', () => {
  const restarted: Word = ['decommissioning', 'service_restart'];
  assert.equal(
    tell([...STRANDED, restarted, 'decommissioned', 'stranded']).record.deadlineMs,
    null,
  );
});

void test('what is not operational in time is stopped, stranded or not', () => {
  const auto = { ...TERMS, bootTimeoutS: 2700 };
  for (const words of [[], ['booting'], STRANDED] as const) {
    const { record } = tell(words, auto);
    assert.equal(record.deadlineMs, 10_000 + 2_700_000);
    const late = planLifecycle(record, { type: 'deadline' }, { ...auto, nowMs: 2_710_000 });
    assert.equal(late.record.state, 'failed');
    assert.ok(late.actions.some((action) => action.do === 'stop'));
  }
  assert.equal(tell(UP, auto).record.deadlineMs, null);
});

void test('a shutdown is a termination if the host said so; a reboot stays one', () => {
  const announce = (how: 'stop' | 'terminate', kind?: 'reboot'): Word => ({
    type: 'announced',
    command: { do: how, ...(kind && { kind }), entry: COMMAND },
  });
  const kindOf = (...words: readonly Word[]) => tell([...UP, ...words]).record.kind;
  assert.equal(kindOf(announce('terminate'), ['decommissioning', 'stop']), 'terminate');
  assert.equal(kindOf(announce('stop'), ['decommissioning', 'stop']), 'stop');
  assert.equal(kindOf(announce('terminate'), ['decommissioning', 'reboot']), 'reboot');
  // The first half of a stop and start.
  assert.equal(kindOf(announce('stop', 'reboot'), ['decommissioning', 'stop']), 'reboot');
  assert.equal(kindOf(['decommissioning', 'service_restart']), 'service_restart');
});

void test('a guest whose first word of its end was lost is decommissioned all the same', () => {
  const { record } = tell([...UP, 'decommissioned']);
  assert.deepEqual([record.state, record.kind], ['decommissioned', 'stop']);
});

void test('what metad tells again, and what is of another run, changes nothing', () => {
  const { record } = tell(UP);
  const again = hear(record, 'stranded', record.sequence);
  assert.equal(planLifecycle(record, again, TERMS).record, record);
  const other = hear(record, 'stranded', record.sequence + 1);
  assert.ok('event' in other);
  const event = { ...other.event, run: COMMAND };
  assert.equal(planLifecycle(record, { ...other, event }, TERMS).record, record);
});

void test('a guest is shown what it can see, not each script', () => {
  assert.equal(tell(['booting', ['started', 'boot/01-a'], ['finished', 'boot/01-a']]).shown, 0);
  assert.equal(tell(UP).shown, 1);
  assert.equal(tell([...UP, 'operational', 'operational']).shown, 1);
});

void test('a boot that begins takes back what the host wanted of the one before', () => {
  const reboot = { type: 'announced', command: { do: 'reboot', entry: COMMAND } } as const;
  assert.equal(tell([...UP, reboot]).record.announced?.do, 'reboot');
  assert.equal(tell([...UP, reboot, 'booting']).record.announced, null);
  assert.deepEqual(tell([]).record.progress, NO_PROGRESS);
});

void test('a tag with the name of something else gives no time', () => {
  const tags = ['constructor', '__proto__'];
  const { decommissionTimeoutS } = lifecycleTermsOf({ hvparams: {}, tags });
  assert.equal(decommissionTimeoutS, 180);
});
