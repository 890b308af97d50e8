import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import type { ImageFormatName } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { givesLogin } from './needed-secrets.ts';

type ImageKey = 'osImage' | 'osImageChecksum' | 'osImageGrow' | 'osImageFormat';
type PackageKey = 'personalizationPackage' | 'packageNeedsPassword';
type Given = OpcodeOf<'INSTANCE_REINSTALL'>;

/**
 * The image that is installed next, with what is given of it over what is stored; `null` is none.
 * Checksum and format are of one image: another one without them has none. Pure.
 * @throws AppError VALIDATION: they are given, and there is no image
 */
export function mergeImage(
  stored: Pick<InstanceRecord, ImageKey>,
  given: Pick<Given, ImageKey>,
): Pick<InstanceRecord, ImageKey> {
  const isOther = given.osImage !== undefined;
  const osImage = given.osImage === undefined ? stored.osImage : given.osImage;
  const { osImageChecksum, osImageFormat, osImageGrow } = given;
  const ofImage = [osImageChecksum, osImageFormat, osImageGrow];
  if (osImage === null && ofImage.some((value) => value !== undefined)) {
    throw new AppError(
      'VALIDATION',
      'a checksum, a format and growing are of an image, and there is none',
      { hint: 'leave them out, or give --os-image SOURCE' },
    );
  }
  return {
    osImage,
    osImageChecksum: osImageChecksum ?? (isOther ? null : stored.osImageChecksum),
    osImageGrow: osImageGrow ?? (osImage !== null && stored.osImageGrow),
    osImageFormat:
      osImageFormat === undefined && !isOther ? stored.osImageFormat : chosenFormat(osImageFormat),
  };
}

/** The package that is laid over next; `null` is none. A login is of one package. Pure. */
export function mergePackage(
  stored: Pick<InstanceRecord, PackageKey>,
  given: Pick<Given, 'personalizationPackage'> & Parameters<typeof givesLogin>[0],
): Pick<InstanceRecord, PackageKey> {
  const { personalizationPackage } = given;
  const isOther = personalizationPackage !== undefined;
  return {
    personalizationPackage: isOther ? personalizationPackage : stored.personalizationPackage,
    packageNeedsPassword: givesLogin(given) || (!isOther && stored.packageNeedsPassword),
  };
}

/** Null where its content shows it. */
export function chosenFormat(given: ImageFormatName | 'auto' | undefined): ImageFormatName | null {
  return given === undefined || given === 'auto' ? null : given;
}
