import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './daemon-stand-in.ts';
import type { ProgramEnd } from './run-program.ts';
import { type InProcessOptions, runInProcess } from './run-in-process.ts';

export const SECRET = 'correct-horse-battery';

export interface AddLab {
  /** A new one for each test. */
  readonly daemon: DaemonStandIn;
  /** Contains files for the command line: secret, key.pub, config.yaml, script.sh, binary. */
  readonly folder: string;
  readonly add: (
    args: readonly string[],
    options?: Partial<InProcessOptions>,
  ) => Promise<ProgramEnd>;
}

/** Creates a lab that registers its own hooks. Its fields can be read in tests only. */
export function createAddLab(): AddLab {
  let daemon: DaemonStandIn;
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gnt-cli-files-'));
    await writeFile(join(folder, 'secret'), `${SECRET}\n`);
    await writeFile(join(folder, 'key.pub'), 'ssh-ed25519 AAAA me@host\n');
    await writeFile(join(folder, 'config.yaml'), '#cloud-config\nruncmd: [ls]\n');
    await writeFile(join(folder, 'script.sh'), '#!/bin/sh\necho hi\n');
    await writeFile(join(folder, 'binary'), Buffer.from([0, 255, 1, 254]));
  });
  after(() => rm(folder, { recursive: true }));
  beforeEach(async (context) => {
    daemon = await startDaemonStandIn();
    // Registered on the test, so that it closes at the end of the test.
    (context as { after: (fn: () => Promise<void>) => void }).after(() => daemon.close());
  });
  return {
    get daemon() {
      return daemon;
    },
    get folder() {
      return folder;
    },
    add: (args, options = {}) =>
      runInProcess('gnt-instance', ['add', ...args], { root: daemon.root, ...options }),
  };
}
