import { type HookPoint, hookPoint } from '#shared/contract/primitives.ts';

/** Stages that only reinstallations have. */
const reinstallPoints: readonly HookPoint[] = ['before-reset', 'after-reset-chroot', 'after-reset'];

/** The stages that an installation has, in their order. */
export function hookPointsOf({
  isReinstall,
}: {
  readonly isReinstall: boolean;
}): readonly HookPoint[] {
  return hookPoint.options.filter((point) => isReinstall || !reinstallPoints.includes(point));
}
