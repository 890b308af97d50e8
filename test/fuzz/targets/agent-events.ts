import assert from 'node:assert/strict';
import {
  type InstallEvent,
  installEvent,
  installEventBatch,
  type InstallReport,
  MAX_EVENTS_BODY_BYTES,
  MAX_EVENTS_PER_BATCH,
} from '#shared/contract/install-event.ts';
import { signEvent } from '#shared/secret/event-signature.ts';
import { AgentWord } from '../../../noded/provision/appliance/agent-word.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate, mutateJson, printJson } from '../mutate.ts';
import { openPure, type Target } from '../target.ts';

/** Fixed, so that cases are reproducible. */
const KEY = '07'.repeat(32);
const STARTED: InstallEvent = {
  ...{ type: 'agent-started', atMs: 1200, userSpaceAtMs: 800, agentVersion: '0.1.0', key: KEY },
};
const EVENTS: readonly InstallEvent[] = [
  { type: 'stage-started', atMs: 1300, stage: 'wait-disks' },
  { type: 'stage-finished', atMs: 1400, stage: 'image', summary: '24 MiB of raw' },
  { type: 'progress', atMs: 1500, stage: 'image', doneBytes: 512, totalBytes: 1024 },
  { type: 'log', atMs: 1600, stage: 'os-scripts', stream: 'stdout', line: 'hello' },
  { type: 'result', atMs: 1700, outcome: { status: 'success', dumpBytes: [1, 2] } },
  {
    ...{ type: 'result', atMs: 1700 },
    outcome: {
      status: 'failure',
      stage: 'mount',
      code: 'NOTHING_TO_MOUNT',
      message: 'none',
      hint: 'x',
    },
  },
];

/**
 * Checks events posted in an agent's name: a batch is refused, or only events with the agent's
 * signature count, each once.
 */
export function agentEventsTarget(
  createWord: () => Pick<AgentWord, 'take'> = () => new AgentWord(),
): Target {
  return {
    name: 'agent-events',
    generate,
    open: () => openPure((input) => check(input, createWord())),
  };
}

function generate(random: SeededRandom): Buffer {
  const events = [
    STARTED,
    ...Array.from({ length: 1 + random.below(2) }, () => random.pick(EVENTS)),
  ];
  const batch = events.map((event, index): unknown => {
    if (random.below(6) === 0) return event; // by an installation medium or a script
    // Bodies change before the signature too: the agent itself may be compromised.
    const body = printJson(random.below(8) === 0 ? mutateJson(event, random) : event);
    return { sequence: index + 1, body, mac: signEvent(KEY, index + 1, body) };
  });
  const order = random.below(6) === 0 ? random.shuffle(batch) : batch;
  const text = Buffer.from(printJson(mutateJson(order, random))).subarray(0, MAX_EVENTS_BODY_BYTES);
  return random.below(5) === 0 ? mutate(text, random) : text;
}

function check(input: Buffer, word: Pick<AgentWord, 'take'>): void {
  let value: unknown;
  try {
    value = JSON.parse(input.toString());
  } catch {
    return; // refused before these parsers
  }
  const parsed = installEventBatch.safeParse(value);
  if (!parsed.success) return;
  assert.ok(parsed.data.length > 0 && parsed.data.length <= MAX_EVENTS_PER_BATCH);
  let last = 0;
  for (const report of parsed.data) {
    const event = word.take(report);
    if (event === null) continue;
    last = assertSigned(report, last);
    assert.ok(Number.isFinite(event.atMs));
    assert.deepEqual(installEvent.parse(JSON.parse(JSON.stringify(event))), event);
  }
}

/** @returns the event's number */
function assertSigned(report: InstallReport, last: number): number {
  assert.ok('body' in report, 'an event that nobody signed');
  assert.equal(report.mac, signEvent(KEY, report.sequence, report.body), 'a forged event');
  assert.ok(report.sequence > last, 'an event that was here before');
  return report.sequence;
}
