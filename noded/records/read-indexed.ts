import { setImmediate as turn } from 'node:timers/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { IndexedInstance, InstanceIndex } from './instance-index.ts';
import type { InstanceRepository } from './instance-repository.ts';

export interface IndexedRecords {
  readonly index: Pick<InstanceIndex, 'list' | 'doubt'>;
  readonly instances: Pick<InstanceRepository, 'findByUuid'>;
}

/** Records that are read at a time: a few milliseconds of work. */
const SLICE = 32;

/**
 * The records of those instances that are meant, as they are now, in slices and in the order of
 * names: one that is gone by then, or cannot be read, is left out.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function* readIndexed(
  { index, instances }: IndexedRecords,
  isMeant: (instance: IndexedInstance) => boolean,
): AsyncGenerator<readonly InstanceRecord[]> {
  const meant = (await index.list()).filter(isMeant);
  const read = async ({ uuid }: IndexedInstance): Promise<readonly InstanceRecord[]> => {
    try {
      const record = await instances.findByUuid(uuid);
      return record === undefined ? [] : [record];
    } catch (error) {
      if (!isAppError(error) || error.code === 'STORE_UNAVAILABLE') throw error;
      index.doubt(uuid);
      return [];
    }
  };
  for (let at = 0; at < meant.length; at += SLICE) {
    yield (await Promise.all(meant.slice(at, at + SLICE).map(read))).flat();
    // An embedded store answers at once, and others would wait.
    await turn();
  }
}
