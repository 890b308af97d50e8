import { AppError } from '#shared/errors/app-error.ts';
import { refusalOf } from '../downloads/transfer/ssrf-guard.ts';
import { parseSource, type Source } from '../downloads/transfer/source-url.ts';

/** @throws AppError IMAGE_SOURCE */
export function parseImageSource(text: string): Source {
  const source = parseSource(text);
  const details = { source: text.slice(0, 500).replace(/\/\/[^/]*@/, '//') };
  if (!source) {
    throw new AppError(
      'IMAGE_SOURCE',
      `the OS image must be an absolute path or a URL (http, https, ftp): '${details.source}'`,
      { details, hint: 'Example: /srv/images/debian.qcow2 or https://example.com/debian.qcow2' },
    );
  }
  const refusal = source.kind === 'url' ? refusalOf(source.url) : undefined;
  if (refusal) {
    throw new AppError('IMAGE_SOURCE', `the image ${details.source} is refused: ${refusal}`, {
      details,
      hint: 'Images cannot come from the metadata address.',
    });
  }
  return source;
}
