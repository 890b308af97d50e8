import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { NO_WORLD } from '../../../../appliance/agent/scripts/confine.ts';
import { runScript } from '../../../../appliance/agent/scripts/run-script.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-run-script-'));
after(() => rmSync(directory, { recursive: true }));

for (const [what, text, hint] of [
  ['without its interpreter names the interpreter', '#!/usr/bin/absent\n', /interpreter/],
  ['whose own command is missing refers to its output', '#!/bin/sh\nabsent', /gnt-instance log/],
  ['that fails refers to its output', '#!/bin/sh\nexit 1', /gnt-instance log/],
] as const) {
  test(`the hint for a script ${what}`, async () => {
    writeFileSync(join(directory, 'create'), text, { mode: 0o755 });
    const running = runScript({
      ...{ confinement: NO_WORLD, directory, path: 'create' },
      environment: { PATH: '/usr/bin:/bin' },
      reporter: { log: () => undefined, progress: () => undefined, isFull: () => false },
    });
    await assert.rejects(running, (error) => {
      assert.ok(isAppError(error, 'SCRIPT_FAILED'));
      assert.match(error.hint ?? '', hint);
      return true;
    });
  });
}
