/** What an installation consists of, as far as it decides who does what where. */
export interface InstallParts {
  readonly hasImage: boolean;
  readonly hasPackage: boolean;
  /** Path of the untrusted script within its definition. */
  readonly applianceScript: string | null;
  /** Path on the host of the trusted script that may run. */
  readonly hostScript: string | null;
}

export type InstallPhase =
  | {
      readonly kind: 'appliance';
      readonly image: boolean;
      readonly script: string | null;
      readonly personalization: boolean;
      /** Runs on the host while the appliance's own script does. */
      readonly alongside: string | null;
    }
  | { readonly kind: 'host-script'; readonly path: string };

/**
 * Image, then scripts, then the package, with as few machines as can be. User content is opened in the appliance whatever
 * runs on the host; a package is laid over the disk only when every script has ended. Pure.
 */
export function planPhases(parts: InstallParts): readonly InstallPhase[] {
  const { hasImage, hasPackage, applianceScript, hostScript } = parts;
  const appliance = (
    what: Partial<Omit<Extract<InstallPhase, { kind: 'appliance' }>, 'kind'>>,
  ): InstallPhase => ({
    kind: 'appliance',
    image: false,
    script: null,
    personalization: false,
    alongside: null,
    ...what,
  });
  if (hostScript === null) {
    return [appliance({ image: hasImage, script: applianceScript, personalization: hasPackage })];
  }
  const phases: InstallPhase[] = [];
  if (applianceScript !== null) {
    phases.push(appliance({ image: hasImage, script: applianceScript, alongside: hostScript }));
  } else {
    if (hasImage) phases.push(appliance({ image: true }));
    phases.push({ kind: 'host-script', path: hostScript });
  }
  if (hasPackage) phases.push(appliance({ personalization: true }));
  return phases;
}
