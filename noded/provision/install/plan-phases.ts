import { type HookPoint, hookPoint } from '#shared/contract/primitives.ts';
import type { HostScript } from '../os/choose-scripts.ts';
import { hookPointsOf } from '../os/hook-points.ts';

/** The parts of an installation that determine its phases. */
export interface InstallParts {
  /** The instance first boots from a medium and installs itself. */
  readonly hasMedium: boolean;
  readonly hasImage: boolean;
  /** This host writes the image, without an appliance. */
  readonly isImageOnHost: boolean;
  readonly hasPackage: boolean;
  /** Path within the definition. */
  readonly applianceScript: string | null;
  readonly hostScript: HostScript | null;
  /** Hooks need an appliance for all of their stages. */
  readonly hasHooks: boolean;
  readonly isReinstall: boolean;
}

export type InstallPhase =
  | {
      readonly kind: 'appliance';
      readonly image: boolean;
      readonly script: string | null;
      readonly personalization: boolean;
      /** Runs on the host in parallel to the appliance's own script. */
      readonly alongside: HostScript | null;
      /** Stages with hooks in this appliance. */
      readonly hooks: readonly HookPoint[];
    }
  | { readonly kind: 'host-script'; readonly script: HostScript }
  | { readonly kind: 'medium' }
  | { readonly kind: 'host-image' };

/** Hooks before the scripts, and hooks after them. */
const scriptsAt = hookPoint.options.indexOf('os-scripts');
const earlyHooks: readonly HookPoint[] = hookPoint.options.slice(0, scriptsAt);
const lateHooks: readonly HookPoint[] = hookPoint.options.slice(scriptsAt + 1);

/**
 * Plans the look: an appliance without the instance's disks checks the content before the
 * installation destroys anything. Null without content. Pure.
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
 * Plans all phases in their order. A disk written by a medium or by this host counts as a disk from
 * an image: scripts, hooks and the package follow. Pure.
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
 * Plans the image, then scripts, then the package, with as few appliances as possible. Only an
 * appliance opens user content. The package follows all scripts. A script on the host divides the
 * stages of the hooks between the appliance before it and the one after it. Pure.
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
