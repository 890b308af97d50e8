import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import type { ImageFormatName } from '#shared/contract/image-formats.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { givesLogin } from '../parameters/needed-secrets.ts';

type ImageKey = 'osImage' | 'osImageChecksum' | 'osImageGrow' | 'osImageFormat';
type PackageKey = 'personalizationPackage' | 'personalizationChecksum' | 'packageNeedsPassword';
type Given = OpcodeOf<'INSTANCE_REINSTALL'>;

/** What a new instance has before an image is given. */
export const noImage: Pick<InstanceRecord, ImageKey> = {
  osImage: null,
  osImageChecksum: null,
  osImageGrow: false,
  osImageFormat: null,
};

/**
 * The image that is installed next, with what is given of it over what is stored; `null` is none.
 * Checksum and format are of one image: another one without them has none, and the same one, named
 * again, keeps them, since a file that was altered has the same name. Pure.
 * @throws AppError VALIDATION: they are given, and there is no image
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

/** What a new instance has before a package is given. */
export const noPackage: Pick<InstanceRecord, PackageKey> = {
  personalizationPackage: null,
  personalizationChecksum: null,
  packageNeedsPassword: false,
};

/**
 * The package that is laid over next; `null` is none. A login and a checksum are of one package:
 * another one has neither, and the same one, named again, keeps both. Pure.
 * @throws AppError VALIDATION: one of the two is given, and there is no package
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

/** The format that was chosen; null where the image's content shows it. */
function chosenFormat(given: ImageFormatName | 'auto' | undefined): ImageFormatName | null {
  return given === undefined || given === 'auto' ? null : given;
}
