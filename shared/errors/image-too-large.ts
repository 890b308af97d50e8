import { MIB } from '../units/bytes.ts';
import { AppError } from './app-error.ts';

/** An image that does not fit on the instance's first disk, found by the host or in the appliance. */
export function imageTooLarge(imageBytes: number, diskBytes: number): AppError {
  const size = `${Math.ceil(imageBytes / MIB)}m`;
  return new AppError(
    'IMAGE_TOO_LARGE',
    `the image needs ${imageBytes} bytes, the first disk has ${diskBytes}`,
    {
      hint: `give a larger disk: -s ${size}, or --disk 0:size=${size}; of an instance that is there, gnt-instance grow-disk --absolute NAME 0 ${size}`,
      details: { imageBytes, diskBytes },
    },
  );
}
