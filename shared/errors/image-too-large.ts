import { MIB } from '../units/bytes.ts';
import { AppError } from './app-error.ts';

const LOOK_AT_IT =
  'Check what was downloaded. If the image is right, use a disk that is large enough: -s SIZE';

/**
 * Returns the error for an image that does not fit on the first disk, found by the host or in the
 * appliance.
 * @param isWhole false if the image was not read to its end and may be larger
 */
export function imageTooLarge(imageBytes: number, diskBytes: number, isWhole = true): AppError {
  const size = `${Math.ceil(imageBytes / MIB)}m`;
  const needs = isWhole ? `needs ${imageBytes} bytes` : `needs more than ${imageBytes} bytes`;
  const giveLarger = `Use a larger disk: -s ${size} or --disk 0:size=${size}. For an existing instance: gnt-instance grow-disk --absolute NAME 0 ${size}`;
  return new AppError(
    'IMAGE_TOO_LARGE',
    `the image ${needs}, but the first disk has ${diskBytes}`,
    {
      hint: isWhole ? giveLarger : LOOK_AT_IT,
      details: { imageBytes, diskBytes },
    },
  );
}
