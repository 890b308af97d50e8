import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as requestTls } from 'node:https';
import type { TestContext } from 'node:test';

interface ReadEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/** Opens the stream and returns a function that reads the next event. */
export async function openEvents(t: TestContext, on: RequestOptions, lastId?: string) {
  const headers = { ...on.headers, ...(lastId !== undefined && { 'last-event-id': lastId }) };
  const ask = on.protocol === 'https:' ? requestTls : request;
  const asked = ask({ ...on, headers, path: '/v1/events' });
  t.after(() => asked.destroy());
  asked.on('error', () => undefined);
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8');
  const events = parseEvents(answer.setEncoding('utf8'));
  const next = async (event?: string): Promise<ReadEvent> => {
    for (;;) {
      const { value } = await events.next();
      assert.ok(value, 'the stream ended');
      if (event === undefined || value.event === event) return value;
    }
  };
  return { next, answer, close: () => asked.destroy() };
}

async function* parseEvents(answer: AsyncIterable<string>): AsyncGenerator<ReadEvent, undefined> {
  let rest = '';
  for await (const text of answer) {
    const blocks = `${rest}${text}`.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const match = /^id: (.+)\nevent: (.+)\ndata: (.+)$/.exec(block);
      if (match === null) continue;
      const [, id = '', event = '', data = ''] = match;
      yield { id, event, data: JSON.parse(data) };
    }
  }
}
