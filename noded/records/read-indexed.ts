import { setImmediate as turn } from 'node:timers/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { IndexedInstance, InstanceIndex } from './instance-index.ts';
import type { InstanceRepository } from './instance-repository.ts';

export interface IndexedRecords {
  readonly index: Pick<InstanceIndex, 'list' | 'doubt'>;
  readonly instances: Pick<InstanceRepository, 'findByUuid' | 'readSome'>;
}

/** Records per read: a few milliseconds of work. */
const SLICE = 32;

/**
 * Yields the present records of the chosen instances in slices, sorted by name. Skips removed and
 * unreadable ones.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function* readIndexed(
  indexed: IndexedRecords,
  isMeant: (instance: IndexedInstance) => boolean,
): AsyncGenerator<readonly InstanceRecord[]> {
  const meant = (await indexed.index.list()).filter(isMeant);
  for (let at = 0; at < meant.length; at += SLICE) {
    const uuids = meant.slice(at, at + SLICE).map(({ uuid }) => uuid);
    const { readable, bad } = await indexed.instances.readSome(uuids);
    for (const { id } of bad) indexed.index.doubt(id);
    yield readable.map(({ value }) => value);
    // An embedded store answers synchronously and would block other work.
    await turn();
  }
}

/**
 * Returns the instance; undefined if it is gone or unreadable.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function readOne(
  { index, instances }: IndexedRecords,
  uuid: string,
): Promise<InstanceRecord | undefined> {
  try {
    return await instances.findByUuid(uuid);
  } catch (error) {
    if (!isAppError(error) || error.code === 'STORE_UNAVAILABLE') throw error;
    index.doubt(uuid);
    return undefined;
  }
}
