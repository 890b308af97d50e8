import { join } from 'node:path';
import { installPlan } from '#shared/contract/plan.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { unmountDisks } from '../../../../../appliance/agent/disks/unmount.ts';

/** Unmounts disk `disk-0` of the machine in the given folder, and prints the result. */
const [, , dir = ''] = process.argv;
const plan = installPlan.parse({
  ...{ version: 1, installId: '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f', instance: 'a.example.com' },
  disks: [{ serial: 'disk-0', sizeBytes: 8 * 1024 ** 2 }],
  ...{ image: null, scripts: null, personalization: null },
  hooks: { points: [], hasDocuments: false },
});
const log = (line: string): void => void process.stdout.write(`${line}\n`);
await unmountDisks(
  plan,
  { sysBlock: join(dir, 'sys'), dev: join(dir, 'dev') },
  { log, progress: () => undefined },
).then(log, (error: unknown) => {
  if (!isAppError(error)) throw error;
  log(`${error.code}: ${error.message}`);
});
