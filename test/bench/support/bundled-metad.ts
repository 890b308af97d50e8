import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '#shared/process/run.ts';
import { ChannelLab } from '../../metad/support/channel-lab.ts';
import { residentBytes, type Report } from './measurement.ts';
import { viewOf } from './metad-host-process.ts';

const PROJECT = join(import.meta.dirname, '../../..');
const INSTANCES = 10;
/** The daemon returns the memory of its start within this time. */
const SETTLED_MS = 5000;

/** Starts the program of an installed package, bundled from the sources of this checkout. */
export async function startBundle(stack: AsyncDisposableStack): Promise<ChannelLab> {
  // Packages with native code are not in the bundle: Node finds them above it.
  const folder = join(PROJECT, `node_modules/.cache/gnt-bench-${process.pid}`);
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await run(process.execPath, [join(PROJECT, 'scripts/bundle.ts'), folder]);
  return ChannelLab.create(undefined, join(folder, 'metad/main.mjs'));
}

/** Measures the memory of an idle daemon. */
export async function measureIdleMemory(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await startBundle(stack));
  for (let index = 0; index < INSTANCES; index += 1) {
    const view = viewOf(index);
    await lab.addGuest(view.channel);
    const { status } = await lab.put(view);
    if (status !== 204) throw new Error(`metad refuses the view of ${view.name}`);
  }
  await sleep(SETTLED_MS);
  report({
    name: `resident memory of the bundle, idle, ${INSTANCES} instances`,
    value: (await residentBytes(lab.metadPid)) / 2 ** 20,
    unit: 'MiB',
    compared_with: null,
  });
}
