import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InstallEvent, MAX_INSTALL_LOG_BYTES } from '#shared/contract/install-event.ts';
import { createReporter } from '../../../../appliance/agent/report/reporter.ts';
import { NO_WORLD, runConfined } from '../../../../appliance/agent/scripts/confine.ts';

const KIB = 1024;
const MIB = KIB ** 2;
/** Eight times what the log holds. */
const PRINTED_BYTES = 64 * MIB;

for (const [what, script] of [
  ['many lines', `yes ${'x'.repeat(60)} | head -c ${PRINTED_BYTES}`],
  ['one line', `head -c ${PRINTED_BYTES} /dev/zero | tr '\\0' x`],
] as const) {
  test(`a script that prints ${what} without end fills the log once, and no memory`, async () => {
    let hasEnded = false;
    let sentBytes = 0;
    let printedBytes = 0;
    let last: InstallEvent | undefined;
    const reporter = createReporter({
      send: (event) => {
        last = event;
        if (event.type === 'log') sentBytes += event.line.length;
      },
      print: (line) => (printedBytes += line.length),
      uptimeMs: () => 1,
      mask: (text) => text,
    });
    const stage = reporter.reporterFor('os-scripts');
    const end = await runConfined(
      NO_WORLD,
      { path: '/' },
      ['/bin/sh', '-c', `${script}; echo done >&2; exit 3`],
      { PATH: '/usr/bin:/bin' },
      (line, stream) => {
        hasEnded ||= line === 'done';
        stage.log(line, stream);
      },
    );
    assert.equal(end.isSuccess, false);
    assert.ok(hasEnded, 'its other lines are read to their end');
    assert.ok(sentBytes <= MAX_INSTALL_LOG_BYTES, `${sentBytes} bytes were sent`);
    // The agent waits for the console, which took 12 minutes for as much as the log holds.
    assert.ok(printedBytes < 128 * KIB, `${printedBytes} bytes were printed`);
    if (what === 'one line') return;
    assert.match(last?.type === 'log' ? last.line : '', /^the log is full/);
    stage.log('still heard');
    assert.equal(last?.type === 'log' && last.line, 'still heard');
  });
}
