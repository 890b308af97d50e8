import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Context } from '../../../cluster-cli/terminal/context.ts';
import { confirm, promptHidden, promptShown } from '../../../cluster-cli/terminal/prompt.ts';

/** A terminal whose user types some pieces. */
function lab(typed: readonly string[], isTTY = true) {
  const modes: boolean[] = [];
  const stdin = Object.assign(new PassThrough(), {
    isTTY,
    setRawMode: (isRaw: boolean) => void modes.push(isRaw),
  });
  const stderr = new PassThrough({ encoding: 'utf8' });
  const context = { terminal: { stdin, stderr } } as unknown as Context;
  for (const piece of typed) stdin.write(piece);
  return { context, modes, stdin, shown: () => String(stderr.read() ?? '') };
}

for (const [what, typed, expected] of [
  ['ends at Return', ['secret\r'], 'secret'],
  ['ends at a line feed', ['secret\nmore'], 'secret'],
  ['comes in pieces', ['se', 'cret', '\r'], 'secret'],
  ['is corrected by Backspace', ['sex\x7fcret\r'], 'secret'],
  ['is corrected by Ctrl-H', ['\bsecrett\b\r'], 'secret'],
  ['begins again after Ctrl-U', ['wrong\x15secret\r'], 'secret'],
  ['has no control characters', ['se\x1b\x01cret\r'], 'secret'],
  ['may be empty', ['\r'], ''],
  ['has at most 4096 characters', [`${'x'.repeat(5000)}\r`], 'x'.repeat(4096)],
] as const) {
  test(`hidden input ${what}, and is not shown`, async () => {
    const { context, modes, stdin, shown } = lab(typed);
    assert.equal(await promptHidden(context, 'Password: '), expected);
    assert.equal(stdin.listenerCount('data'), 0, 'it leaves later input to others');
    assert.equal(shown(), 'Password: \n');
    assert.deepEqual(modes, [true, false], 'the terminal is as before');
  });
}

for (const [key, typed] of [
  ['Ctrl-C', 'secret\x03'],
  ['Ctrl-D', '\x04'],
] as const) {
  test(`${key} ends hidden input, and the terminal is as before`, async () => {
    const { context, modes } = lab([typed]);
    await assert.rejects(promptHidden(context, 'Password: '), { code: 'INTERRUPTED' });
    assert.deepEqual(modes, [true, false]);
  });
}

test('hidden input needs a terminal', async () => {
  const { context, modes } = lab(['secret\r'], false);
  await assert.rejects(promptHidden(context, 'Password: '), {
    ...{ code: 'USAGE', message: "no terminal to ask for 'Password'" },
  });
  assert.deepEqual(modes, []);
});

for (const [answer, isYes] of [
  ['y', true],
  ['YES', true],
  [' yes ', true],
  ['', false],
  ['n', false],
  ['yep', false],
  ['ay', false],
] as const) {
  test(`the answer '${answer}' means ${isYes ? 'yes' : 'no'}`, async () => {
    const { context, shown } = lab([`${answer}\n`]);
    assert.equal(await confirm(context, 'Remove web1?'), isYes);
    assert.equal(shown(), 'Remove web1? [y/N] ');
  });
}

test('the end of the input is no answer', async () => {
  const { context, stdin } = lab([]);
  const asked = promptShown(context, 'Name: ');
  stdin.end();
  await assert.rejects(asked, { code: 'INTERRUPTED' });
});
