import { type HookPoint, hookPoint } from '#shared/contract/primitives.ts';
import type { HostScript } from '../os/choose-scripts.ts';
import { hookPointsOf } from '../os/hook-points.ts';

/** What an installation consists of, as far as it decides who does what where. */
export interface InstallParts {
  /** The instance boots from a medium first, and installs itself. */
  readonly hasMedium: boolean;
  readonly hasImage: boolean;
  /** This host writes it, without an appliance. */
  readonly isImageOnHost: boolean;
  readonly hasPackage: boolean;
  /** Path of the untrusted script within its definition. */
  readonly applianceScript: string | null;
  /** The trusted script that may run on the host. */
  readonly hostScript: HostScript | null;
  /** There are documents of hooks, which need an appliance for all of their stages. */
  readonly hasHooks: boolean;
  readonly isReinstall: boolean;
}

export type InstallPhase =
  | {
      readonly kind: 'appliance';
      readonly image: boolean;
      readonly script: string | null;
      readonly personalization: boolean;
      /** Runs on the host while the appliance's own script does. */
      readonly alongside: HostScript | null;
      /** Stages whose hooks are run in it. */
      readonly hooks: readonly HookPoint[];
    }
  | { readonly kind: 'host-script'; readonly script: HostScript }
  | { readonly kind: 'medium' }
  | { readonly kind: 'host-image' };

/** Hooks before the scripts, and those after them. */
const scriptsAt = hookPoint.options.indexOf('os-scripts');
const earlyHooks: readonly HookPoint[] = hookPoint.options.slice(0, scriptsAt);
const lateHooks: readonly HookPoint[] = hookPoint.options.slice(scriptsAt + 1);

/**
 * What an appliance without the instance's disks can say of an installation before it destroys
 * anything; null when there is nothing to look at. Pure.
 */
export function planLook(
  parts: Pick<InstallParts, 'hasImage' | 'hasPackage' | 'applianceScript' | 'hasHooks'>,
): Extract<InstallPhase, { kind: 'appliance' }> | null {
  const { hasImage, hasPackage, applianceScript, hasHooks } = parts;
  if (!hasImage && !hasPackage && applianceScript === null && !hasHooks) return null;
  return {
    kind: 'appliance',
    image: hasImage,
    script: applianceScript,
    personalization: hasPackage,
    alongside: null,
    hooks: hookPoint.options,
  };
}

/**
 * All that is to be done, in its order. What a medium has installed, or this host has written, is a
 * disk like one from an image: scripts, hooks and the package are laid over it. Pure.
 */
export function planPhases(parts: InstallParts): readonly InstallPhase[] {
  const { hasMedium, isImageOnHost, hasPackage, applianceScript, hostScript, hasHooks } = parts;
  if (!hasMedium && !isImageOnHost) return planOwnPhases(parts);
  const isAll = !hasPackage && applianceScript === null && hostScript === null && !hasHooks;
  return [
    { kind: hasMedium ? 'medium' : 'host-image' },
    ...(isAll ? [] : planOwnPhases({ ...parts, hasImage: false })),
  ];
}

/**
 * Plans the image, then scripts, then the package, with as few machines as can be. User content is
 * opened in the appliance whatever runs on the host; a package is laid over the disk only when
 * every script has ended. Around a script on the host, the hooks' stages are divided between the
 * machine before it and the one after it. Pure.
 */
function planOwnPhases(parts: InstallParts): readonly InstallPhase[] {
  const { hasImage, hasPackage, applianceScript, hostScript, hasHooks } = parts;
  const had = hookPointsOf(parts);
  const ofThisRun = (points: readonly HookPoint[]): readonly HookPoint[] =>
    points.filter((point) => had.includes(point));
  const early = ofThisRun(earlyHooks);
  const late = ofThisRun(lateHooks);
  const appliance = (
    what: Partial<Omit<Extract<InstallPhase, { kind: 'appliance' }>, 'kind'>>,
  ): InstallPhase => ({
    kind: 'appliance',
    image: false,
    script: null,
    personalization: false,
    alongside: null,
    hooks: [],
    ...what,
  });
  if (hostScript === null) {
    return [
      appliance({
        image: hasImage,
        script: applianceScript,
        personalization: hasPackage,
        hooks: [...early, 'os-scripts', ...late],
      }),
    ];
  }
  const phases: InstallPhase[] = [];
  if (applianceScript !== null) {
    phases.push(
      appliance({
        image: hasImage,
        script: applianceScript,
        alongside: hostScript,
        hooks: [...early, 'os-scripts'],
      }),
    );
  } else {
    if (hasImage || hasHooks) phases.push(appliance({ image: hasImage, hooks: early }));
    phases.push({ kind: 'host-script', script: hostScript });
  }
  if (hasPackage || hasHooks) {
    const hooks: HookPoint[] = applianceScript === null ? ['os-scripts', ...late] : [...late];
    phases.push(appliance({ personalization: hasPackage, hooks }));
  }
  return phases;
}
