import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { request } from 'node:http';
import { inspect } from 'node:util';
import type { Opcode } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { plainText } from '#shared/text/plain-text.ts';
import { createMask } from '#shared/secret/mask.ts';
import { cleanLine } from '#shared/text/lines.ts';
import { bothFailures } from '../../../noded/jobs/both-failures.ts';
import { describeFailure } from '../../../noded/jobs/describe-failure.ts';
import { inStage } from '../../../noded/jobs/in-stage.ts';
import { createLogUnexpected } from '../../../noded/jobs/log-unexpected.ts';
import { listOpcodeValues } from '../../../noded/jobs/opcode-values.ts';
import { silentLogger } from '#shared/log/log.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import type { Target } from '../target.ts';

/** Part of every value, and of no fixed message. */
const CANARY = 'k3yOfTheGuest';
const PIECES: readonly string[] = [
  ...['\0', '\n', '\r\n', '\t', '\x1b[31m', '\x7f', '\x85', ' ', "'", '"', '`', '\\', '/', '%00'],
  ...['\\x00', '\\u0000', '$(x)', '${x}', '&', '+', '=', ',', '@', 'é', '💥', '\u2028', '\u202e'],
  ...[
    "' Received '",
    '": "',
    '\n    at x (file:///x.ts:1:2)',
    'a',
    'b',
    'password',
    'x'.repeat(130),
  ],
];

/**
 * Encodings of a value in the output of a job's programs. The message of an expected failure may
 * repeat them.
 */
const FORMS: readonly ((value: string) => string)[] = [
  (value) => value,
  (value) => cleanLine(value),
  (value) => plainText(value),
  (value) => JSON.stringify(value),
  (value) => inspect(value, { maxStringLength: null, breakLength: Infinity }),
  (value) => encodeURIComponent(value),
  (value) => Buffer.from(value).toString('base64'),
  (value) => Buffer.from(value).toString('hex'),
];

/** Calls that make Node throw because of the value. */
const FAILURES: readonly ((value: string) => unknown)[] = [
  (value) => spawn('/nowhere/x', [`${value}\0`]),
  (value) => spawn('/nowhere/x', [], { env: { OSP_KEY: `${value}\0` } }),
  (value) => openSync(`/nowhere/${value}\0`, 'r'),
  (value) => request({ headers: { [`${value}\0`]: 'x' } }),
  (value) => request({ headers: { x: `${value}\0` } }),
  (value) => request({ path: `/${value}\0` }),
  (value) => new URL(`http://${value}@[/`),
  (value) => JSON.parse(`{"key": ${value}`) as unknown,
  (value) => Buffer.from('x', value as BufferEncoding),
  (value) => {
    throw new Error(`cannot use ${value}`);
  },
  (value) => {
    throw new Error(`cannot use ${value.slice(0, value.indexOf(CANARY) + CANARY.length)}...`);
  },
];

/** Checks that records and logs of a failing job do not contain its secret. */
export function hiddenValuesTarget(
  maskOf: (values: readonly string[]) => (text: string) => string = createMask,
): Target {
  return {
    name: 'hidden-values',
    generate,
    open: () =>
      Promise.resolve({
        check: (input: Buffer) => check(input.toString(), maskOf),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
  };
}

function generate(random: SeededRandom): Buffer {
  const pieces = (): Buffer[] =>
    Array.from({ length: random.below(6) }, () =>
      random.below(8) === 0 ? Buffer.from([random.below(256)]) : Buffer.from(random.pick(PIECES)),
    );
  return Buffer.concat([...pieces(), Buffer.from(CANARY), ...pieces()]);
}

async function check(
  value: string,
  maskOf: (values: readonly string[]) => (text: string) => string,
): Promise<void> {
  if (!value.includes(CANARY)) return;
  // The mask reads only these fields of the opcode.
  const opcode = {
    ...{ opcode: 'INSTANCE_SET_PARAMS', name: 'web1' },
    ...{ osParametersPrivate: {}, osParametersSecret: { key: value } },
  } as unknown as Opcode;
  const mask = maskOf(listOpcodeValues(opcode));
  const told: unknown[] = [];
  const tell = (thrown: unknown): void => {
    const job = { id: 1, phase: 'execution', mask } as const;
    const second = { what: 'more', error: thrown, hint: 'x' };
    for (const failure of [thrown, inStage(thrown, 'os-scripts', []), bothFailures(thrown, second)])
      told.push(describeFailure(failure, job));
  };
  // A value selects one form and one failure, which keeps a case within a millisecond.
  const choice = Buffer.from(value).reduce((sum, byte) => sum + byte, 0);
  const said = FORMS[choice % FORMS.length]?.(value);
  tell(new AppError('COMMAND_FAILED', `it said <${said}>`, { details: { value } }));
  const thrown = thrownBy(() => FAILURES[choice % FAILURES.length]?.(value));
  tell(thrown);
  await createLogUnexpected({
    listHiddenValues: () => Promise.resolve([]),
    logger: { ...silentLogger, error: (_event, fields) => told.push(fields) },
  })(thrown, opcode, {});
  for (const one of told) assert.doesNotMatch(JSON.stringify(one), /k3yOfThe|TheGuest/);
}

function thrownBy(fail: () => unknown): unknown {
  try {
    return new Error(`nothing failed: ${typeof fail()}`);
  } catch (error) {
    return error;
  }
}
