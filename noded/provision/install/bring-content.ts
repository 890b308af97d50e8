import { isAbsolute } from 'node:path';
import { redactSource } from '#shared/contract/redact-source.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import { readImageBytes } from '../../content/images/image-bytes.ts';
import type { FetchedImage, ImageCache } from '../../content/images/image-cache.ts';
import { checksumMismatch, parseChecksum } from '../../content/images/digest.ts';
import {
  type ContentCheck,
  createDigestCheck,
  readThrough,
} from '../../content/signatures/content-check.ts';
import type { Signatures } from '../../content/signatures/signatures.ts';
import { installationParameters } from '../../instances/parameters/installation-parameters.ts';
import { hasMedium } from '../../instances/machines/plan-boot.ts';
import type { InstallRequest } from './install-request.ts';
import type { OpenInstallPackage } from './open-install-package.ts';
import type { StageRecorder } from '../../jobs/stage-recorder.ts';

/**
 * Dependencies of the stages that fetch or check content. These stages do not touch the instance,
 * which may be running.
 */
export interface BringDependencies {
  readonly images: ImageCache;
  readonly openPackage: OpenInstallPackage;
  readonly signatures: Signatures;
}

type Content = Pick<InstallRequest, 'instance' | 'secrets'>;

export interface BroughtImage {
  readonly image: FetchedImage;
  /** Of the whole file; null for a local file without checksum and signature, which is not read. */
  readonly checksum: string | null;
  /** Key of its signature, as in `Signatures.checkOf`; null without a check. */
  readonly key: string | null;
}

/**
 * Downloads the image to this node, and checks its checksum and signature; null for an installation
 * without an image. The caller releases the image.
 */
export async function fetchImage(
  dependencies: BringDependencies,
  { instance }: Content,
  stages: StageRecorder,
  context: JobContext,
): Promise<BroughtImage | null> {
  const { osImage, osImageChecksum } = instance;
  if (osImage === null) return null;
  return fetch(osImage, osImageChecksum, dependencies, stages, context);
}

/** Downloads a medium's cdrom through the image cache; null for any medium not given by URL. */
export async function fetchCdrom(
  dependencies: BringDependencies,
  { instance }: Content,
  stages: StageRecorder,
  context: JobContext,
): Promise<FetchedImage | null> {
  const { cdrom_image_path: source } = installationParameters(instance);
  if (!hasMedium(instance) || source === undefined || isAbsolute(source)) return null;
  return (await fetch(source, null, dependencies, stages, context)).image;
}

async function fetch(
  source: string,
  checksum: string | null,
  { images, signatures }: BringDependencies,
  stages: StageRecorder,
  { report, signal }: JobContext,
): Promise<BroughtImage> {
  return stages.timed('fetch-image', async () => {
    const image = await images.fetch(source, {
      signal,
      onProgress: (done, total) => report.progress('fetch-image', done, total),
      onWait: (message) => report.log(message),
      ...(checksum !== null && { checksum }),
    });
    try {
      let key: string | undefined;
      let sha256 = image.sha256 ?? undefined;
      const check = await signatures.checkOf(source, { signal }, (found) => {
        key ??= found;
      });
      if (check !== null) {
        const digest = createDigestCheck('sha256', (found) => {
          sha256 = found.toString('hex');
        });
        await readImage(image, sha256 === undefined ? [check, digest] : [check], signal);
      }
      const signed = check === null ? '' : ', its signature is valid';
      const brought: BroughtImage = {
        image,
        checksum: sha256 === undefined ? checksum : `sha256:${sha256}`,
        key: key ?? null,
      };
      return [`${image.sizeBytes} bytes of ${redactSource(source)}${signed}`, brought] as const;
    } catch (error) {
      image.release();
      throw error;
    }
  });
}

async function readImage(
  image: FetchedImage,
  checks: readonly ContentCheck[],
  signal: AbortSignal,
): Promise<void> {
  await readThrough(readImageBytes(image, signal), checks, signal);
  await image.verifyUnchanged();
}

/**
 * Requests the package with its login and reads its first bytes; reads all bytes when it has a
 * checksum or a signature. The appliance streams the package only in its last stages, so a missing
 * package would show late. The node keeps no copy, so the package is read twice.
 * @returns the SHA-256 of the checked bytes; undefined without a check
 */
export async function checkPackage(
  { openPackage, signatures }: BringDependencies,
  { instance, secrets }: Content,
  stages: StageRecorder,
  { signal }: JobContext,
): Promise<string | undefined> {
  const { personalizationPackage: source, personalizationChecksum } = instance;
  if (source === null) return undefined;
  return stages.timed('check-package', async () => {
    const { packageUser: user, packagePassword: password } = secrets;
    const opened = await openPackage({ instance, secrets }, signal);
    if (opened === undefined) throw new Error('the plan has a package, but it was not opened');
    using held = new DisposableStack();
    held.defer(() => opened.stream.destroy());
    const signature = await signatures.checkOf(source, { user, password, signal });
    const checks = [
      ...(signature === null ? [] : [signature]),
      ...(personalizationChecksum === null ? [] : [checksumCheck(source, personalizationChecksum)]),
    ];
    const size = opened.sizeBytes === null ? '' : `${opened.sizeBytes} bytes `;
    const summary = `${size}at ${redactSource(source)}, available`;
    if (checks.length === 0) return [summary, undefined] as const;
    let sha256: string | undefined;
    const digest = createDigestCheck('sha256', (found) => {
      sha256 = found.toString('hex');
    });
    await readThrough(opened.stream, [...checks, digest], signal);
    const signed = signature === null ? '' : ', its signature is valid';
    return [`${summary}, complete and valid${signed}`, sha256] as const;
  });
}

/** @param checksum `sha256:HEX` or `sha512:HEX` */
function checksumCheck(source: string, checksum: string): ContentCheck {
  const expected = parseChecksum(checksum);
  return createDigestCheck(expected.algorithm, (digest) => {
    const actual = digest.toString('hex');
    if (actual === expected.hex) return;
    const { message, details } = checksumMismatch(redactSource(source), expected, actual);
    throw new AppError('PACKAGE_CHECKSUM_MISMATCH', message, {
      details,
      hint: "Compare it with the publisher's checksum. Give the new one with --personalization-checksum",
    });
  });
}
