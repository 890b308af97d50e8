import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '#shared/clock/clock.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import type { PromisedTrees } from '../../netboot/promised-trees.ts';
import type { MetadLink } from '../../net/metad-link/metad-link.ts';

/** Makes a guest's view on a device, with a revision that metad accepts. */
export type MakeView = (device: string, revision: number) => Promise<InstanceView>;

export interface ShownViewsDependencies {
  readonly metad: Pick<MetadLink, 'putView' | 'deleteView'>;
  /** The boot files that the views refer to. */
  readonly boots: Pick<PromisedTrees, 'settle' | 'forget'>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Publishes the views of this node's machines to metad, each newer than the last. */
export function createShownViews(dependencies: ShownViewsDependencies) {
  const { metad, boots, logger, clock } = dependencies;
  // One at a time per instance: metad would refuse a late view as older.
  const publishing = new SerialQueue<string>();
  const lost = new Map<string, readonly string[]>();
  let last = 0;
  const noteLost = ({ uuid, name }: InstanceView, names: readonly string[]): void => {
    const isKnown = isDeepStrictEqual(lost.get(uuid) ?? [], names);
    lost.set(uuid, names);
    if (!isKnown && names.length > 0) logger.warn('secrets.lost', { instance: name, names });
  };
  return {
    /**
     * Continues above metad's last revision. metad refuses older views, as after the clock was set
     * back.
     */
    continueRevisions: (lastRevision: number): void => {
      last = Math.max(last, lastRevision);
    },
    /** @param isUp false for a machine that is about to start */
    publish: (
      uuid: string,
      device: string,
      makeView: MakeView,
      isUp: boolean = true,
    ): Promise<void> =>
      publishing.run(uuid, async () => {
        last = Math.max(last + 1, clock.now());
        let isShown = false;
        try {
          const view = await makeView(device, last);
          noteLost(view, await metad.putView(view, isUp));
          isShown = true;
        } finally {
          boots.settle(uuid, isShown);
        }
      }),
    /** Returns the secrets that the guest cannot read because their values are lost. */
    lostSecrets: (uuid: string): readonly string[] => lost.get(uuid) ?? [],
    drop: async (uuid: string): Promise<void> => {
      lost.delete(uuid);
      try {
        await metad.deleteView(uuid);
      } catch (error) {
        // An unreachable metad holds no view. A refusal by a running one is an error.
        const level = isAppError(error, 'METAD_UNAVAILABLE') ? 'debug' : 'error';
        logger[level]('view.not-dropped', { uuid, err: error });
      }
      boots.forget(uuid);
    },
  };
}

export type ShownViews = ReturnType<typeof createShownViews>;
