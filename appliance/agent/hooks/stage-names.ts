import { type HookStage, hookStages } from '#shared/contract/primitives.ts';
import { suggest } from '#shared/errors/suggest.ts';

const aliases: Readonly<Record<string, 'install.pre' | 'install.post'>> = {
  'kairos-install.pre': 'install.pre',
  // Kairos unmounts everything before this stage.
  'kairos-install.after': 'install.post',
};

/**
 * Kairos' stages outside of installations: the guest's own boot, upgrades, a provider's work, and
 * installations with Trusted Boot.
 */
const foreignStages = [
  ...['rootfs', 'initramfs', 'boot', 'fs', 'network', 'reconcile'],
  ...['before-upgrade', 'after-upgrade', 'after-upgrade-chroot'],
  ...['install', 'reset', 'upgrade'].flatMap((action) => [
    `kairos-uki-${action}.pre`,
    `kairos-uki-${action}.after`,
  ]),
  'provider-kairos.bootstrap',
];

const suffixes = ['', '.before', '.after'] as const;

const ours: ReadonlyMap<string, HookStage> = new Map<string, HookStage>([
  ...hookStages.map((stage) => [stage, stage] as const),
  ...Object.entries(aliases).flatMap(([alias, point]) =>
    suffixes.map((suffix) => [`${alias}${suffix}`, `${point}${suffix}`] as const),
  ),
]);
const foreign = new Set(
  foreignStages.flatMap((stage) => suffixes.map((suffix) => `${stage}${suffix}`)),
);

export type StageMeaning =
  | { readonly kind: 'ours'; readonly stage: HookStage }
  | { readonly kind: 'foreign' }
  /** Unknown, with the nearest known name. */
  | { readonly kind: 'unknown'; readonly nearest: string | null };

export function findStage(name: string): StageMeaning {
  const stage = ours.get(name);
  if (stage !== undefined) return { kind: 'ours', stage };
  if (foreign.has(name)) return { kind: 'foreign' };
  return { kind: 'unknown', nearest: suggest(name, [...ours.keys(), ...foreign]) };
}

/** Whether the stage's steps run in the instance's root. */
export function isChroot(stage: HookStage): boolean {
  return /-chroot(\.|$)/.test(stage);
}

/** Whether an image overwrites its disk after the stage. */
export function comesBeforeImage(stage: HookStage): boolean {
  return /^(install\.pre|before-install|before-reset)(\.|$)|^image\.before$/.test(stage);
}
