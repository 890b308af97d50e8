import assert from 'node:assert/strict';
import {
  type LifecycleEvent,
  lifecycleEventBatch,
  MAX_ENTRY_OUTPUT_BYTES,
  NO_PROGRESS,
  type ViewLifecycle,
} from '#shared/contract/lifecycle.ts';
import { EntryOutput } from '../../../metad/channel/entry-output.ts';
import { GuestLifecycle } from '../../../metad/channel/guest-lifecycle.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate, mutateJson, printJson } from '../mutate.ts';
import { openPure, type Target } from '../target.ts';

const RUN = '11111111-1111-4111-8111-111111111111';
const BOOT = '22222222-2222-4222-8222-222222222222';
const COMMAND = '33333333-3333-4333-8333-333333333333';
const script = (name: string): ViewLifecycle['lists']['boot'][number] => ({
  ...{ name, content: 'IyEvYmluL3NoCg==', env: null },
});
const VIEW: ViewLifecycle = {
  status: {
    ...{ state: 'booting', run: RUN, kind: null, deadlineMs: null, decommissionTimeoutS: 180 },
    next: { do: 'run', entry: COMMAND, script: '01-now' },
  },
  progress: NO_PROGRESS,
  lists: {
    boot: [script('01-a'), script('02-b')],
    operational: [script('01-now')],
    decommission: [script('01-c')],
  },
  ...{ attachments: [], env: {}, commandEnv: {} },
};
const LIFE = [
  { type: 'booting' },
  ...['boot/01-a', 'boot/02-b'].flatMap((entry) => of(entry)),
  { type: 'operational' },
  ...of(COMMAND),
  { type: 'decommissioning', kind: 'stop' },
  ...of('decommission/01-c'),
  { type: 'decommissioned' },
];
/** Two bytes give one post. */
const MAX_POSTS_BYTES = 64;
const ENTRIES: ReadonlySet<string> = new Set([
  ...['boot/01-a', 'boot/02-b', COMMAND, 'decommission/01-c'],
]);

function of(entry: string): readonly object[] {
  return [
    { type: 'started', entry },
    { type: 'finished', entry, status: 0 },
  ];
}

/**
 * Checks a guest's events about its run lists, and its posted output. A batch is refused, or has
 * events of this run in a possible order. Each byte of the output counts at most once.
 */
export function lifecycleTarget(
  createLifecycle: () => Pick<GuestLifecycle, 'judge' | 'accept'> = () => new GuestLifecycle(VIEW),
  createOutput: () => Pick<EntryOutput, 'push' | 'flush' | 'end'> = () =>
    new EntryOutput('boot/01-a'),
): Target {
  return {
    name: 'lifecycle',
    generate,
    open: () =>
      openPure((input) => {
        checkEvents(input, createLifecycle());
        checkOutput(input, createOutput());
      }),
  };
}

function generate(random: SeededRandom): Buffer {
  const first = random.below(3) === 0 ? random.below(LIFE.length) : 0;
  const events = LIFE.slice(first, first + 1 + random.below(LIFE.length)).map((event, index) => ({
    ...{ run: RUN, boot: BOOT, number: first + index + 1 },
    ...event,
  }));
  const order = random.below(6) === 0 ? random.shuffle(events) : events;
  const batch = random.below(3) === 0 ? order : mutateJson(order, random);
  const text = Buffer.from(printJson(batch));
  return random.below(5) === 0 ? mutate(text, random) : text;
}

function checkEvents(input: Buffer, lifecycle: Pick<GuestLifecycle, 'judge' | 'accept'>): void {
  let value: unknown;
  try {
    value = JSON.parse(input.toString());
  } catch {
    return; // refused before these parsers
  }
  const parsed = lifecycleEventBatch.safeParse(value);
  if (!parsed.success) return;
  const judged = lifecycle.judge(parsed.data);
  if ('refused' in judged) return assert.ok(judged.index < parsed.data.length);
  for (const one of judged) {
    assert.ok(parsed.data.includes(one.event));
    checkWord(one.event);
    assert.equal(one.progress.number, one.event.number);
    lifecycle.accept(one);
  }
  const again = lifecycle.judge(parsed.data);
  assert.ok(!('refused' in again) && again.length === 0, 'what was posted twice counted twice');
}

function checkWord(event: LifecycleEvent): void {
  assert.equal(event.run, RUN);
  if ('entry' in event) assert.ok(ENTRIES.has(event.entry), `a foreign entry: ${event.entry}`);
}

/** Reads each pair of bytes as a post: how far its offset goes back, and its length. */
function checkOutput(input: Buffer, output: Pick<EntryOutput, 'push' | 'flush' | 'end'>): void {
  const mask = (line: string): string => line.slice(0, 8191);
  let told = '';
  let lost = 0;
  const take = (pieces: ReturnType<EntryOutput['push']>): void => {
    for (const { text, lostBytes } of pieces) {
      assert.ok(text.length <= 8192 && lostBytes >= 0);
      told += text;
      lost += lostBytes;
    }
  };
  const bytes = Buffer.from(input.toString('latin1').replaceAll(/[^ -~\n]/g, '?')).subarray(
    0,
    MAX_POSTS_BYTES,
  );
  let claimed = 0;
  for (let at = 0; at + 1 < bytes.length; at += 2) {
    const offset = Math.max(0, output.end - (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) / 4 - 20) | 0;
    take(output.push(offset, bytes.subarray(offset, offset + (bytes[at + 1] ?? 0)), mask));
    claimed = Math.max(claimed, output.end);
    assert.equal(output.end, claimed, 'it went back');
  }
  take(output.flush(mask));
  assert.equal(told.length + lost, output.end, 'a byte was told twice, or never counted');
  assert.ok(told.length <= MAX_ENTRY_OUTPUT_BYTES);
}
