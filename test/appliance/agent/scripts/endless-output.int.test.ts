import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type InstallEvent, MAX_INSTALL_LOG_BYTES } from '#shared/contract/install-event.ts';
import { createReporter } from '../../../../appliance/agent/report/reporter.ts';
import { NO_WORLD } from '../../../../appliance/agent/scripts/confine.ts';
import { runScript } from '../../../../appliance/agent/scripts/run-script.ts';

const KIB = 1024;
const MIB = KIB ** 2;
/** Eight times the capacity of the log. */
const PRINTED_BYTES = 64 * MIB;

const directory = mkdtempSync(join(tmpdir(), 'gnt-endless-output-'));
after(() => rmSync(directory, { recursive: true }));

for (const [what, script] of [
  ['many lines', `yes ${'x'.repeat(60)} | head -c ${PRINTED_BYTES}`],
  ['one line', `head -c ${PRINTED_BYTES} /dev/zero | tr '\\0' x`],
] as const) {
  test(`the output of a script that prints ${what} without end is bounded in the log and on the console`, async () => {
    let seenLines = 0;
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
    const text = `#!/bin/sh\n${script}; echo done >&2; exit 3`;
    writeFileSync(join(directory, 'create'), text, { mode: 0o755 });
    const running = runScript({
      ...{ confinement: NO_WORLD, directory, path: 'create' },
      environment: { PATH: '/usr/bin:/bin' },
      reporter: {
        ...stage,
        log: (line, stream) => {
          seenLines += 1;
          stage.log(line, stream);
        },
      },
    });
    await assert.rejects(running, /exited with status 3[^]*\ndone/, 'its end is read');
    // Splitting the rest into lines made 4 GiB of output take half an hour.
    assert.ok(seenLines * 61 <= MAX_INSTALL_LOG_BYTES + 64 * KIB, `${seenLines} lines were seen`);
    assert.ok(sentBytes <= MAX_INSTALL_LOG_BYTES, `${sentBytes} bytes were sent`);
    // The agent waits for the console, which took 12 minutes for a full log.
    assert.ok(printedBytes < 128 * KIB, `${printedBytes} bytes were printed`);
    if (what === 'one line') return;
    assert.match(last?.type === 'log' ? last.line : '', /^the log is full/);
    stage.log('still heard');
    assert.equal(last?.type === 'log' && last.line, 'still heard');
  });
}
