import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '#shared/clock/clock.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import type { PromisedTrees } from '../../netboot/promised-trees.ts';
import type { MetadLink } from '../../net/metad-link/metad-link.ts';

/** Makes what a guest is shown on a device, of a revision that metad takes. */
export type MakeView = (device: string, revision: number) => Promise<InstanceView>;

export interface ShownViewsDependencies {
  readonly metad: Pick<MetadLink, 'putView' | 'deleteView'>;
  /** What machines load from, beside the views that say so. */
  readonly boots: Pick<PromisedTrees, 'settle' | 'forget'>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The views that metad has of this node's machines: each newer than the one before it. */
export interface ShownViews {
  /**
   * metad refuses views that are older than its own: a clock that was set back must not make ours
   * so.
   */
  continueRevisions(lastRevision: number): void;
  /** @param isUp false for a machine that is about to start */
  publish(uuid: string, device: string, makeView: MakeView, isUp?: boolean): Promise<void>;
  drop(uuid: string): Promise<void>;
  /** Names of the secrets that the guest cannot read, since their values are lost. */
  lostSecrets(uuid: string): readonly string[];
}

export function createShownViews(dependencies: ShownViewsDependencies): ShownViews {
  const { metad, boots, logger, clock } = dependencies;
  // One after the other of an instance, or metad would refuse the one that comes late as older.
  const publishing = new SerialQueue<string>();
  const lost = new Map<string, readonly string[]>();
  let last = 0;
  const noteLost = ({ uuid, name }: InstanceView, names: readonly string[]): void => {
    const isKnown = isDeepStrictEqual(lost.get(uuid) ?? [], names);
    lost.set(uuid, names);
    if (!isKnown && names.length > 0) logger.warn('secrets.lost', { instance: name, names });
  };
  return {
    continueRevisions: (lastRevision) => {
      last = Math.max(last, lastRevision);
    },
    publish: (uuid, device, makeView, isUp = true) =>
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
    lostSecrets: (uuid) => lost.get(uuid) ?? [],
    drop: async (uuid) => {
      lost.delete(uuid);
      try {
        await metad.deleteView(uuid);
      } catch (error) {
        // A metad that is down holds no view; one that is up and refuses is worth a look.
        const level = isAppError(error, 'METAD_UNAVAILABLE') ? 'debug' : 'error';
        logger[level]('view.not-dropped', { uuid, err: error });
      }
      boots.forget(uuid);
    },
  };
}
