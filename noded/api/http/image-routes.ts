import type { imageEndpoints } from '#shared/contract/endpoints.ts';
import type { ImageCatalogue } from '../../content/catalogue/image-catalogue.ts';
import type { ImageLender } from '../../content/images/lend-image.ts';
import { type Handlers, Reply } from './handlers.ts';

export interface ImageRoutesDependencies {
  readonly catalogue: ImageCatalogue;
  readonly imageLender: ImageLender;
}

/** Lists this node's images, imported or from its catalogues. */
export function imageRoutes({
  catalogue,
  imageLender,
}: ImageRoutesDependencies): Handlers<typeof imageEndpoints> {
  return {
    'GET /v1/images': () => catalogue.list(),
    'GET /v1/catalogues': () => catalogue.catalogues(),
    'POST /v1/images/resolve': ({ body, signal }) => catalogue.resolve(body.name, signal),
    'POST /v1/images/import': ({ body, signal }) => catalogue.import(body, signal),
    'POST /v1/images/remove': ({ body }) => catalogue.remove(body.name),
    'POST /v1/catalogues': ({ body, signal }) => catalogue.add(body.name, body.source, signal),
    'POST /v1/catalogues/update': ({ body, signal }) => catalogue.update(body.names, signal),
    'GET /v1/image-contents/{checksum}': async ({ params, query, from = 'this node' }) => {
      const { offset = 0 } = query;
      const { stream, sizeBytes } = await imageLender.lend(params.checksum, offset, from);
      return new Reply(200, stream, { headers: { 'content-length': String(sizeBytes) } });
    },
  };
}
