import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { test, type TestContext } from 'node:test';
import type { JobEvent } from '#shared/contract/job.ts';
import { createView } from '../../../cluster-cli/progress/view.ts';
import { applyJobEvent, startProgress } from '../../../cluster-cli/progress/state.ts';
import type { Context } from '../../../cluster-cli/terminal/context.ts';

const LOG: JobEvent = { type: 'log', atMs: 0, level: 'info', message: 'hello' };
const OUTPUT: JobEvent = { type: 'script-output', atMs: 0, number: 1, text: 'of the guest\n' };

/** Shows job 7 on a terminal or in a pipe. `written` has all that stderr received since then. */
async function lab(t: TestContext, isTerminal: boolean) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const stderr = Object.assign(new PassThrough({ encoding: 'utf8' }), { columns: 60, rows: 20 });
  const printed: string[] = [];
  let nowMs = 0;
  const errors = { isTerminal, hasColor: false, hasUnicode: true };
  const context = {
    ...{ clock: { now: () => (nowMs += 1000) }, terminal: { stderr, errors } },
    note: (line: string) => void stderr.write(`${line}\n`),
  } as unknown as Context;
  const view = await createView(context, 7, (text) => void printed.push(text));
  let progress = startProgress(7);
  const show = (event: JobEvent): void => {
    progress = applyJobEvent(progress, event);
    view.show(event, progress);
  };
  const written = () => stripVTControlCharacters(String(stderr.read() ?? ''));
  return { view, show, written, printed };
}

for (const isTerminal of [true, false]) {
  const where = isTerminal ? 'on a terminal' : 'in a pipe';
  test(`a closed view ${where} writes nothing more`, async (t) => {
    const { view, show, written, printed } = await lab(t, isTerminal);
    show(LOG);
    assert.match(written(), /hello/);
    show(OUTPUT);
    assert.deepEqual(printed, ['of the guest\n']);
    view.close();
    written();
    for (const event of [LOG, OUTPUT]) show(event);
    view.lost();
    view.close();
    t.mock.timers.tick(1000);
    assert.equal(written(), '');
    assert.equal(printed.length, 1);
  });

  test(`a lost daemon is named ${where} until it answers`, async (t) => {
    const { view, show, written } = await lab(t, isTerminal);
    written();
    view.lost();
    assert.match(written(), /the node daemon does not respond; reconnecting/);
    show(LOG);
    assert.doesNotMatch(written(), /does not respond/);
    view.lost();
    assert.match(written(), /does not respond/);
  });
}

test('a lost daemon is named once in a pipe', async (t) => {
  const { view, written } = await lab(t, false);
  view.lost();
  view.lost();
  assert.equal(written().match(/does not respond/g)?.length, 1);
});

test('a terminal is drawn again as time passes', async (t) => {
  const { show, written } = await lab(t, true);
  show({ type: 'stage-started', atMs: 0, stage: 'image' });
  written();
  t.mock.timers.tick(1000);
  assert.notEqual(written(), '');
});
