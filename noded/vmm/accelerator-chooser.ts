import { AppError } from '#shared/errors/app-error.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { AcceleratorChoice } from './machine.ts';
import type { Accelerator } from './machine.ts';

/** Chooses KVM for `auto` only after a test, and logs the choice. */
export function createAcceleratorChooser(probe: () => Promise<AcceleratorChoice>) {
  let known: Promise<AcceleratorChoice> | undefined;
  /** Runs the test once, because its result does not change while the host runs. */
  const proved = (): Promise<AcceleratorChoice> => {
    known ??= probe().catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
  return {
    probe: proved,
    /** @throws AppError HOST_PREREQUISITE when `kvm` is requested and does not work */
    choose: async (
      wanted: 'auto' | 'kvm' | 'tcg',
      context: JobContext | undefined,
    ): Promise<Accelerator> => {
      if (wanted === 'tcg') return 'tcg';
      const { accelerator, reason } = await proved();
      if (wanted === 'kvm' && accelerator !== 'kvm') {
        throw new AppError('HOST_PREREQUISITE', `accel=kvm was requested, but ${reason}`, {
          hint: 'Use accel=auto or accel=tcg, or repair KVM: see gnt-node doctor',
        });
      }
      if (wanted === 'auto') context?.report.log(`accelerator ${accelerator}: ${reason}`);
      return accelerator;
    },
  };
}

export type AcceleratorChooser = ReturnType<typeof createAcceleratorChooser>;
