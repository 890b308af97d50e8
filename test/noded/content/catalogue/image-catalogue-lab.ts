import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { PublisherAway } from '../../../../noded/content/catalogue/fetch-small.ts';
import { createImageCatalogue } from '../../../../noded/content/catalogue/image-catalogue.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';

export const CHECKSUM = `sha256:${'a'.repeat(64)}`;
export const OTHER = 'b'.repeat(64);
export type Web = Record<string, string | Buffer | (() => Promise<string>)>;
/** The server exists and lacks the document. */
export const MISSING = 'missing';

/** Creates a catalogue that parses documents with the sandboxed program. The network is a table. */
export async function newCatalogue(
  t: TestContext,
  web: Web,
  cached: ReadonlySet<string> = new Set(),
  used: ReadonlySet<string> = new Set(),
) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-catalogue-'));
  t.after(() => rm(dir, { recursive: true }));
  const open = () =>
    createImageCatalogue({
      ...{ file: join(dir, 'catalogues.json'), importedDir: join(dir, 'imported') },
      listPathsInUse: () => Promise.resolve(used),
      images: { holds: (checksum) => Promise.resolve(cached.has(checksum)) },
      fetchSmall: async (source, maxBytes) => {
        const given = web[source];
        const found = typeof given === 'function' ? await given() : given;
        if (found === undefined) throw new PublisherAway(`no ${source}`);
        if (found === MISSING) throw new AppError('DOWNLOAD_FAILED', `${source}: status 404`);
        const bytes = typeof found === 'string' ? Buffer.from(found) : found;
        if (bytes.length > maxBytes) throw new AppError('CATALOGUE_INVALID', 'too long');
        return bytes;
      },
      gpgv: { users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID), dir: join(dir, 'run') },
      ...{ machine: 'amd64', clock: systemClock },
    });
  return { catalogue: open(), open, dir };
}
