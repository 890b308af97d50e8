import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import type { ImageFormatName } from '#shared/contract/image-formats.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { givesLogin } from '../parameters/needed-secrets.ts';

type ImageKey = 'osImage' | 'osImageChecksum' | 'osImageGrow' | 'osImageFormat';
type PackageKey = 'personalizationPackage' | 'personalizationChecksum' | 'packageNeedsPassword';
type Given = OpcodeOf<'INSTANCE_REINSTALL'>;

export const noImage: Pick<InstanceRecord, ImageKey> = {
  osImage: null,
  osImageChecksum: null,
  osImageGrow: false,
  osImageFormat: null,
};

/**
 * Returns the image of the next installation: the request's values over the stored ones; `null`
 * unsets it. Checksum and format belong to one image, so another image starts without them. The
 * same image, named again, keeps them: a file that was altered has the same name. Pure.
 * @throws AppError VALIDATION if they are given without an image
 */
export function mergeImage(
  stored: Pick<InstanceRecord, ImageKey>,
  given: Pick<Given, ImageKey>,
): Pick<InstanceRecord, ImageKey> {
  const { osImage = stored.osImage, osImageFormat, osImageGrow } = given;
  const isOther = osImage !== stored.osImage;
  const { osImageChecksum = isOther ? null : stored.osImageChecksum } = given;
  const ofImage = [given.osImageChecksum ?? undefined, osImageFormat, osImageGrow];
  if (osImage === null && ofImage.some((value) => value !== undefined)) {
    throw new AppError(
      'VALIDATION',
      'checksum, format and growing apply to an image, and there is none',
      { hint: 'Leave them out, or give --os-image SOURCE.' },
    );
  }
  return {
    osImage,
    osImageChecksum,
    osImageGrow: osImageGrow ?? (osImage !== null && stored.osImageGrow),
    osImageFormat:
      osImageFormat === undefined && !isOther ? stored.osImageFormat : chosenFormat(osImageFormat),
  };
}

export const noPackage: Pick<InstanceRecord, PackageKey> = {
  personalizationPackage: null,
  personalizationChecksum: null,
  packageNeedsPassword: false,
};

/**
 * Returns the personalization package of the next installation; `null` unsets it. Login and
 * checksum belong to one package: another package starts without them, the same one keeps both.
 * Pure.
 * @throws AppError VALIDATION if either is given without a package
 */
export function mergePackage(
  stored: Pick<InstanceRecord, PackageKey>,
  given: Pick<Given, 'personalizationPackage' | 'personalizationChecksum'> &
    Parameters<typeof givesLogin>[0],
): Pick<InstanceRecord, PackageKey> {
  const { personalizationPackage = stored.personalizationPackage } = given;
  const isOther = personalizationPackage !== stored.personalizationPackage;
  const { personalizationChecksum = isOther ? null : stored.personalizationChecksum } = given;
  if (personalizationPackage === null && given.personalizationChecksum != null) {
    throw new AppError(
      'VALIDATION',
      'the checksum applies to a personalization package, and there is none',
      {
        hint: 'Leave it out, or give --personalization-package URL.',
      },
    );
  }
  if (personalizationPackage === null && givesLogin(given)) {
    throw new AppError(
      'VALIDATION',
      'the login applies to a personalization package, and there is none',
      {
        hint: 'Leave out --personalization-user and --personalization-password, or give --personalization-package URL.',
      },
    );
  }
  return {
    personalizationPackage,
    personalizationChecksum,
    packageNeedsPassword:
      personalizationPackage !== null &&
      (givesLogin(given) || (!isOther && stored.packageNeedsPassword)),
  };
}

/** Returns the chosen format; null to detect it from the image's content. */
function chosenFormat(given: ImageFormatName | 'auto' | undefined): ImageFormatName | null {
  return given === undefined || given === 'auto' ? null : given;
}
