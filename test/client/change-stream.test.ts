import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { fc } from '../lab/fast-check.ts';
import { ApiFailure } from '../../client/api-client.ts';
import {
  type ChangeEvent,
  EventParser,
  followChanges,
  type StreamPosition,
} from '../../client/change-stream.ts';

const HELLO = 'id: e-1\nevent: hello\ndata: {"node":"n1","version":"1","isResumed":false}\n\n';
const JOBS = 'id: e-2\nevent: jobs\ndata: {"changed":[],"removed":[7]}\n\n';

function answerOf(...pieces: readonly string[]): Response {
  return new Response(ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece))));
}

/** Returns an answer that sends a text and nothing more until the signal aborts. */
function silentAfter(text: string, signal: AbortSignal): Response {
  const body = new ReadableStream({
    start: (controller) => {
      controller.enqueue(new TextEncoder().encode(text));
      signal.addEventListener('abort', () => controller.error(signal.reason));
    },
  });
  return new Response(body);
}

/** Follows answers, one per connection, until the last one has ended. */
async function follow(
  t: TestContext,
  answers: readonly (() => Response)[],
  position: StreamPosition = { lastEventId: '' },
) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const stop = new AbortController();
  const events: ChangeEvent['event'][] = [];
  const states: string[] = [];
  const asked: (string | undefined)[] = [];
  const left = [...answers];
  await followChanges({
    open: (headers) => {
      asked.push(headers['Last-Event-ID']);
      const answer = left.shift();
      assert.ok(answer);
      return Promise.resolve(answer());
    },
    onEvent: ({ event }) => events.push(event),
    onState: (state) => {
      states.push(state === 'open' ? state : state.code);
      if (state === 'open') return;
      if (left.length === 0) stop.abort();
      else setImmediate(() => t.mock.timers.runAll());
    },
    position,
    signal: stop.signal,
  });
  return { events, states, asked };
}

test('a new connection asks for the events after the last one', async (t) => {
  const { events, asked } = await follow(t, [
    () => answerOf(HELLO, JOBS),
    () => answerOf(': alive\n\n'),
  ]);
  assert.deepEqual(events, ['hello', 'jobs']);
  assert.deepEqual(asked, [undefined, 'e-2']);
});

test('a stream with a stored position asks for the events after it', async (t) => {
  const position = { lastEventId: 'e-0' };
  const { asked } = await follow(t, [() => answerOf(HELLO, JOBS)], position);
  assert.deepEqual([asked, position], [['e-0'], { lastEventId: 'e-2' }]);
});

test('a stream that the node ends is reported as broken', async (t) => {
  const { states } = await follow(t, [() => answerOf(HELLO)]);
  assert.deepEqual(states, ['open', 'UNREACHABLE']);
});

test('after a sleep, a connection that is silent is replaced', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const stop = new AbortController();
  const wakes = new EventTarget();
  const asked: (string | undefined)[] = [];
  const wakeAfter = (sleepMs: number): void => {
    t.mock.timers.tick(sleepMs);
    wakes.dispatchEvent(new Event('wake'));
  };
  await followChanges({
    open: (headers, signal) => {
      asked.push(headers['Last-Event-ID']);
      return Promise.resolve(silentAfter(HELLO, signal));
    },
    // Timers of a sleep that is shorter than the limit for silence do not fire.
    onEvent: () => {
      assert.equal(asked.length, 1);
      setImmediate(() => {
        wakeAfter(15_000);
        assert.equal(asked.length, 1, 'a connection with recent data stays');
        setImmediate(() => wakeAfter(15_000));
      });
    },
    onState: (state) => {
      if (state === 'open') {
        if (asked.length === 2) stop.abort();
      } else setImmediate(() => wakes.dispatchEvent(new Event('wake')));
    },
    wakes,
    signal: stop.signal,
  });
  assert.deepEqual(asked, [undefined, 'e-1']);
});

test('an answer without a session ends the stream with that failure', async () => {
  const body = JSON.stringify({ code: 'LOGIN_REQUIRED', message: 'log in' });
  await assert.rejects(
    followChanges({
      open: () => Promise.resolve(new Response(body, { status: 401 })),
      onEvent: () => assert.fail(),
      signal: new AbortController().signal,
    }),
    (error) => error instanceof ApiFailure && error.code === 'LOGIN_REQUIRED',
  );
});

test('events do not depend on the pieces in which they arrive', () => {
  const text = `: alive\n\n${HELLO}${JOBS}event: reset\ndata: {}\n\n`;
  const whole = new EventParser().push(text);
  assert.deepEqual(
    whole.map(({ id, event }) => [id, event]),
    [
      ['e-1', 'hello'],
      ['e-2', 'jobs'],
      [undefined, 'reset'],
    ],
  );
  fc.assert(
    fc.property(fc.array(fc.nat(text.length)), (cuts) => {
      const parser = new EventParser();
      const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
      const pieces = at.slice(1).map((end, index) => text.slice(at[index], end));
      assert.deepEqual(
        pieces.flatMap((piece) => parser.push(piece)),
        whole,
      );
    }),
  );
});
