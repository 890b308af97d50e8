import { type HookPoint, hookPoint } from '#shared/contract/primitives.ts';

const reinstallPoints: readonly HookPoint[] = ['before-reset', 'after-reset-chroot', 'after-reset'];

/** Returns the stages of an installation in their order. */
export function hookPointsOf({
  isReinstall,
}: {
  readonly isReinstall: boolean;
}): readonly HookPoint[] {
  return hookPoint.options.filter((point) => isReinstall || !reinstallPoints.includes(point));
}
