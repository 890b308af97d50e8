import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  NO_PROGRESS,
  type LifecycleEvent,
  type ViewLifecycle,
} from '#shared/contract/lifecycle.ts';
import { GuestLifecycle } from '../../../metad/channel/guest-lifecycle.ts';
import { lifecycleOf, RUN, scriptOf } from '../support/lifecycle-fixture.ts';

const [BOOT, OTHER_RUN] = ['a'.repeat(8), RUN.replace('1', '2')];
const lists = { boot: [scriptOf('01-a', 'true')], operational: [], decommission: [] };
const view = (changes: Partial<Parameters<typeof lifecycleOf>[0]> = {}): ViewLifecycle =>
  lifecycleOf({ lists, ...changes });
const event = (number: number, rest: object): LifecycleEvent =>
  ({ run: RUN, boot: BOOT, number, ...rest }) as LifecycleEvent;
const BEGINS = event(1, { type: 'booting' });
const STARTS = event(2, { type: 'started', entry: 'boot/01-a' });
const FINISHES = event(3, { type: 'finished', entry: 'boot/01-a', status: 0 });
const IS_UP = event(4, { type: 'operational' });

/** Accepts events one by one, and returns the state after each, or the refused field. */
function report(guest: GuestLifecycle, ...events: readonly LifecycleEvent[]): readonly string[] {
  return events.map((one) => {
    const judged = guest.judge([one]);
    if ('refused' in judged) return judged.field;
    for (const taken of judged) guest.accept(taken);
    return judged.map(({ progress }) => progress.state).join() || 'repeated';
  });
}

test('a guest reports its boot in order, and repeats without effect', () => {
  const guest = new GuestLifecycle(view());
  assert.deepEqual(report(guest, BEGINS, STARTS, STARTS, FINISHES, IS_UP, IS_UP), [
    ...['booting', 'booting', 'repeated', 'booting', 'operational', 'repeated'],
  ]);
});

test('a batch is judged as a whole, and changes nothing until it is accepted', () => {
  const guest = new GuestLifecycle(view());
  const taken = guest.judge([BEGINS, STARTS, FINISHES, IS_UP]);
  assert.ok(!('refused' in taken));
  assert.equal(taken.length, 4);
  const wrong = guest.judge([BEGINS, FINISHES]);
  assert.ok('refused' in wrong);
  assert.deepEqual([wrong.field, wrong.index], ['entry', 1]);
  const twoBoots = guest.judge([BEGINS, { ...STARTS, boot: 'b'.repeat(8) }]);
  assert.ok('refused' in twoBoots);
  assert.deepEqual([twoBoots.field, twoBoots.index], ['boot', 1]);
});

test('after a restart of metad, reports may be missing before the first one', () => {
  const guest = new GuestLifecycle(view());
  assert.deepEqual(report(guest, FINISHES, IS_UP), ['booting', 'operational']);
});

test('a run that begins here has no missing reports', () => {
  const guest = new GuestLifecycle(view());
  guest.follow(view({ run: OTHER_RUN }));
  assert.deepEqual(report(guest, { ...IS_UP, run: OTHER_RUN }), ['boot']);
  assert.equal(guest.run, OTHER_RUN);
});

test('a run that another metad had served may have missing reports', () => {
  const guest = new GuestLifecycle(view());
  const progress = { ...NO_PROGRESS, boot: BOOT, number: 1 };
  guest.follow({ ...view({ run: OTHER_RUN }), progress });
  assert.deepEqual(report(guest, { ...IS_UP, run: OTHER_RUN }), ['operational']);
});

test('another view of the same run does not go back to older progress', () => {
  const guest = new GuestLifecycle(view());
  report(guest, BEGINS, STARTS, FINISHES);
  guest.follow(view());
  assert.deepEqual(report(guest, IS_UP), ['operational']);
});

test('a report is news while the view shows another state, or if it changes the progress', () => {
  const newsOf = (guest: GuestLifecycle, one: LifecycleEvent) => {
    const judged = guest.judge([one]);
    assert.ok(!('refused' in judged));
    return judged.map(({ isNews }) => isNews);
  };
  const guest = new GuestLifecycle(view());
  report(guest, BEGINS, STARTS, FINISHES, IS_UP);
  const again = event(5, { type: 'operational' });
  assert.deepEqual(newsOf(guest, again), [true], 'the view says booting');
  guest.follow(view({ state: 'operational' }));
  assert.deepEqual(newsOf(guest, again), [false]);
  const down = event(5, { type: 'decommissioning', kind: 'terminate' });
  assert.deepEqual(newsOf(guest, down), [true]);
});

test('output is kept for the running script and the last one only', () => {
  const guest = new GuestLifecycle(view());
  report(guest, BEGINS);
  assert.equal(guest.outputOf('boot/01-a'), undefined);
  report(guest, STARTS);
  const output = guest.outputOf('boot/01-a');
  assert.ok(output);
  assert.equal(guest.heldOutputOf('boot/01-a'), output);
  report(guest, FINISHES);
  assert.equal(guest.outputOf('boot/01-a'), output, 'late output of the same script');
  assert.equal(guest.heldOutputOf('boot/02-b'), undefined);
  report(guest, event(1, { type: 'booting', boot: 'c'.repeat(8) }));
  assert.equal(guest.heldOutputOf('boot/01-a'), undefined, 'another boot');
});

test('inputs of a command are hidden while its output can arrive', () => {
  const commandEnv = { TOKEN: { text: 'hush' }, KEY: { parameter: 'hostkey' } };
  const next = { do: 'run', entry: 'operational/01-x' };
  const asked = { ...view({ state: 'operational', next } as object), commandEnv };
  const guest = new GuestLifecycle(asked);
  assert.deepEqual(guest.hiddenInputs, ['hush']);
  const { hiddenInputs } = guest;
  guest.follow(asked);
  assert.equal(guest.hiddenInputs, hiddenInputs, 'the same array while its texts are equal');
  guest.takeOver(['of another metad']);
  assert.deepEqual(guest.hiddenInputs, ['of another metad', 'hush']);
  guest.follow(view({ state: 'operational' }));
  assert.deepEqual(guest.hiddenInputs, ['of another metad']);
  guest.follow(view({ run: OTHER_RUN }));
  assert.deepEqual(guest.hiddenInputs, []);
});
