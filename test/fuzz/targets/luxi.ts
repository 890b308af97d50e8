import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseGanetiInstance } from '../../../metad/ganeti/instance-dict.ts';
import { encodeLuxi, LuxiDecoder } from '../../../metad/ganeti/luxi-requests.ts';
import {
  LuxiParseFailure,
  LuxiRefusal,
  parseLuxiRequest,
} from '../../../metad/ganeti/luxi-requests.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate, mutateJson, printJson } from '../mutate.ts';
import { assertNoCrash, openPure, type Target } from '../target.ts';

const END = 3;
/** Small enough that some messages exceed it. */
const MAX_BYTES = 16 * 1024;
const MAX_REFUSAL_LENGTH = 1_000;
const requests = readFileSync(
  new URL('../../../fixtures/metad/ganeti-requests.json', import.meta.url),
  'utf8',
);

/**
 * Checks Ganeti's socket: the chunks do not affect the messages, and a request is parsed or refused
 * with Ganeti's errors.
 */
export function luxiTarget(parse: typeof parseGanetiInstance = parseGanetiInstance): Target {
  const seeds = Object.values(JSON.parse(requests) as Record<string, unknown>);
  return {
    name: 'luxi',
    generate: (random) => generate(seeds, random),
    open: () => openPure((input) => check(input, parse)),
  };
}

function generate(seeds: readonly unknown[], random: SeededRandom): Buffer {
  const messages = Array.from({ length: 1 + random.below(3) }, () =>
    Buffer.concat([
      Buffer.from(printJson(mutateJson(random.pick(seeds), random))),
      Buffer.from([END]),
    ]),
  );
  const bytes = Buffer.concat(messages);
  return random.below(3) === 0 ? mutate(bytes, random) : bytes;
}

function check(input: Buffer, parse: typeof parseGanetiInstance): void {
  const expected: Buffer[] = [];
  let rest = input;
  for (let end = rest.indexOf(END); end >= 0; end = rest.indexOf(END)) {
    expected.push(rest.subarray(0, end));
    rest = rest.subarray(end + 1);
  }
  const messages = decode(input);
  if (messages === 'too long') {
    assert.ok(
      [...expected, rest].some(({ length }) => length > MAX_BYTES),
      'no message is over the limit',
    );
    return;
  }
  assert.deepEqual(
    messages,
    expected.map((bytes) => bytes.toString()),
  );
  // An invalid request ends its connection.
  for (const message of messages) if (!answer(message, parse)) break;
}

/**
 * Decodes the input in pieces. Their lengths depend on the bytes, so that a file reproduces them.
 */
function decode(input: Buffer): readonly string[] | 'too long' {
  const decoder = new LuxiDecoder(MAX_BYTES);
  const messages: string[] = [];
  try {
    for (let at = 0; at < input.length;) {
      const length = 1 + (((input[at] ?? 0) * 37) % 977);
      messages.push(...decoder.push(input.subarray(at, at + length)));
      at += length;
    }
  } catch (error) {
    assert.ok(error instanceof RangeError && /^message larger than/.test(error.message));
    return 'too long';
  }
  return messages;
}

/** @returns whether the connection stays open */
function answer(message: string, parse: typeof parseGanetiInstance): boolean {
  try {
    const request = parseLuxiRequest(message);
    if (request.method === 'echo')
      assert.equal(encodeLuxi(request.text).indexOf(END), encodeLuxi(request.text).length - 1);
    else {
      const instance = parse(request.instance);
      assert.ok(!Number.isNaN(new Date(instance.createdAtMs).getTime()), 'a time that is no date');
      for (const ip of instance.communicationIps) assert.match(ip, /^\d+\.\d+\.\d+\.\d+$/);
    }
  } catch (error) {
    if (!(error instanceof LuxiRefusal) && !(error instanceof LuxiParseFailure)) throw error;
    assertNoCrash(error);
    assert.ok(error.message.length <= MAX_REFUSAL_LENGTH, 'a long refusal');
    if (error instanceof LuxiParseFailure) return false;
  }
  return true;
}
