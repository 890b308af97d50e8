import { redactSource } from '#shared/contract/redact-source.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { FetchedImage, ImageCache } from '../images/image-cache.ts';
import type { InstallRequest } from './install-request.ts';
import type { OpenInstallPackage } from './open-install-package.ts';
import type { StageRecorder } from './stage-recorder.ts';

/**
 * Stages of an installation that bring what it is made of, or show that it can be had. They touch
 * nothing of the instance, which may be running.
 */
export interface BringDependencies {
  readonly images: ImageCache;
  readonly openPackage: OpenInstallPackage;
}

type Content = Pick<InstallRequest, 'instance' | 'secrets'>;

/**
 * The image as a file of this node, its checksum compared; null for an installation without one.
 * The caller releases it.
 */
export async function fetchImage(
  { images }: BringDependencies,
  { instance }: Content,
  stages: StageRecorder,
  { report, signal }: JobContext,
): Promise<FetchedImage | null> {
  const source = instance.osImage;
  if (source === null) return null;
  return stages.timed('fetch-image', async () => {
    const image = await images.fetch(source, {
      signal,
      onProgress: (done, total) => report.progress('fetch-image', done, total),
      onWait: (message) => report.log(message),
      ...(instance.osImageChecksum !== null && { checksum: instance.osImageChecksum }),
    });
    return [`${image.sizeBytes} bytes from ${redactSource(source)}`, image] as const;
  });
}

/**
 * Asks for the package with its login and reads its first bytes. The package itself is streamed
 * into the appliance, in the last of its stages: until then nobody would have noticed.
 */
export async function checkPackage(
  { openPackage }: BringDependencies,
  { instance, secrets }: Content,
  stages: StageRecorder,
  { signal }: JobContext,
): Promise<void> {
  const source = instance.personalizationPackage;
  if (source === null) return;
  await stages.timed('check-package', async () => {
    const opened = await openPackage({ instance, secrets }, signal);
    opened?.stream.destroy();
    const size = opened?.sizeBytes == null ? '' : `${opened.sizeBytes} bytes `;
    return `${size}at ${redactSource(source)}, to be had`;
  });
}
