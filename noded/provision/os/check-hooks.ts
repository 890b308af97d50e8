import PQueue from 'p-queue';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import type { HookBook } from '#shared/contract/hook-book.ts';
import type { HookDocument, HookFile } from '#shared/contract/hooks.ts';
import { readKeptHooks } from '#shared/files/read-kept-hooks.ts';
import { judgeHooks } from '#shared/sandbox/judge-hooks.ts';
import { diskPathInAppliance } from '../../storage/disk-serials.ts';
import { collectHooks } from './collect-hooks.ts';
import { hookPointsOf } from './hook-points.ts';

export interface HookQuery {
  /** Folder of the OS definition. */
  readonly osPath: string | null;
  readonly instance: readonly HookFile[];
  readonly hasImage: boolean;
  readonly isReinstall: boolean;
  /** Name of the appliance that runs the hooks. Its own hooks run first. */
  readonly appliance: string;
}

export interface CheckedHooks {
  /** The node's hooks in the order of their execution, without the appliance's own. */
  readonly documents: readonly HookDocument[];
  /** The order of all hooks for display; null without hooks. */
  readonly book: HookBook | null;
}

/** Gathers the hooks of an installation, and reads them in a sandbox. */
export interface HookChecker {
  /** @throws AppError VALIDATION, FILE_UNREADABLE, HOST_PREREQUISITE */
  check(query: HookQuery, signal?: AbortSignal): Promise<CheckedHooks>;
}

export interface HookCheckerDependencies {
  readonly clusterDir: string;
  /** Hooks kept by `gnt-appliance build --hooks`. */
  readonly applianceFile: string;
  /** Returns the names of an appliance's own hooks. */
  readonly hooksOf: (appliance: string) => Promise<readonly string[]>;
  readonly firstUid: number;
  /** Returns the names of the allowed package mirrors. */
  readonly mirrors: () => Promise<readonly string[]>;
}

/** Each check is a process. */
const MAX_AT_ONCE = 2;

export function createHookChecker(dependencies: HookCheckerDependencies): HookChecker {
  const { clusterDir, applianceFile, hooksOf, firstUid, mirrors } = dependencies;
  const queue = new PQueue({ concurrency: MAX_AT_ONCE });
  return {
    async check({ osPath, instance, hasImage, isReinstall, appliance }, signal) {
      const documents = await collectHooks({ clusterDir, osPath, instance });
      // An appliance that was built elsewhere keeps its hooks to itself: only its agent reads them.
      const isBuilt = appliance === BUILT_APPLIANCE;
      const kept = isBuilt ? await readKeptHooks(applianceFile, 'FILE_UNREADABLE') : [];
      const own = kept.map((file) => ({ source: 'appliance' as const, ...file }));
      const all = [...own, ...documents];
      const remarks = isBuilt ? [] : describeUnseen(appliance, await hooksOf(appliance));
      if (all.length === 0)
        return { documents, book: remarks.length === 0 ? null : { stages: [], remarks } };
      const question = {
        documents: all,
        facts: {
          points: hookPointsOf({ isReinstall }),
          imageDisk: hasImage ? diskPathInAppliance(0) : null,
          mirrors: [...(await mirrors())],
        },
      };
      const book = await queue.add(() => judgeHooks(question, { firstUid, signal }), {
        ...(signal && { signal }),
      });
      return { documents, book: { ...book, remarks: [...remarks, ...book.remarks] } };
    },
  };
}

/** Returns a remark on hooks that run without being in the book. */
function describeUnseen(appliance: string, hooks: readonly string[]): string[] {
  if (hooks.length === 0) return [];
  return [
    `appliance ${appliance} runs hooks of its own before these, which are not shown: ${hooks.join(', ')}`,
  ];
}
