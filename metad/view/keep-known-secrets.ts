import type { ViewBoot } from '#shared/contract/boot-view.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { ServedView } from './served-view.ts';

/**
 * Keeps known secrets in a later view of the same installation: noded forgets them after the job
 * that had them.
 */
export function keepKnownSecrets(known: ServedView, next: ServedView): ServedView {
  if (known.instanceId !== next.instanceId) return next;
  const osParameters = new Map(
    [...next.osParameters].map(([name, parameter]) => {
      const isUnknown = parameter.visibility === 'secret' && parameter.value === null;
      const kept = isUnknown ? known.osParameters.get(name) : undefined;
      return [name, kept?.visibility === 'secret' ? kept : parameter];
    }),
  );
  const boot = next.keepsBoot ? known.boot : next.boot && keepBootFiles(known, next.boot);
  return { ...next, osParameters, ...(boot && { boot }) };
}

/**
 * Keeps files of the same boot environment that cannot be rendered again, while nothing but secrets
 * in them could have changed.
 */
function keepBootFiles({ boot: known }: ServedView, next: ViewBoot): ViewBoot {
  if (known?.bootEnv !== next.bootEnv) return next;
  const files = Object.entries(next.files).map(([path, file]) => {
    const former = 'lost' in file ? ownValue(known.files, path) : undefined;
    return [path, former?.basis === file.basis ? (former ?? file) : file] as const;
  });
  return { ...next, files: Object.fromEntries(files) };
}
