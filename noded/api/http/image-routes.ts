import {
  addCatalogue,
  catalogueInfo,
  imageInfo,
  importImage,
  removeImage,
  resolvedImage,
  resolveImage,
  updateCatalogues,
} from '#shared/contract/image-catalogue.ts';
import type { ImageCatalogue } from '../../content/catalogue/image-catalogue.ts';
import { question, route, type AnyApiRoute } from './api-route.ts';

export interface ImageRoutesDependencies {
  readonly catalogue: ImageCatalogue;
}

/**
 * Names of images are a node's own: what it imported, and what the catalogues that it was given
 * say.
 */
export function imageRoutes({ catalogue }: ImageRoutesDependencies): readonly AnyApiRoute[] {
  return [
    question('/v1/images', 'Lists the images of all catalogues', imageInfo.array(), () =>
      catalogue.list(),
    ),
    question('/v1/catalogues', 'Lists the image catalogues', catalogueInfo.array(), () =>
      catalogue.catalogues(),
    ),
    route({
      method: 'POST',
      path: '/v1/images/resolve',
      summary: 'Returns the current source and checksum of an image',
      request: resolveImage,
      answers: { 200: resolvedImage },
      handle: async ({ body, signal }) => ({
        status: 200,
        body: await catalogue.resolve(body.name, signal),
      }),
    }),
    route({
      method: 'POST',
      path: '/v1/images/import',
      summary: 'Imports a file of this node as an image',
      request: importImage,
      answers: { 204: null },
      handle: async ({ body, signal }) => {
        await catalogue.import(body, signal);
        return { status: 204 };
      },
    }),
    route({
      method: 'POST',
      path: '/v1/images/remove',
      summary: 'Removes an imported image or a catalogue',
      request: removeImage,
      answers: { 204: null },
      handle: async ({ body }) => {
        await catalogue.remove(body.name);
        return { status: 204 };
      },
    }),
    route({
      method: 'POST',
      path: '/v1/catalogues',
      summary: 'Adds a catalogue from a file of this node or an HTTPS URL',
      request: addCatalogue,
      answers: { 204: null },
      handle: async ({ body, signal }) => {
        await catalogue.add(body.name, body.source, signal);
        return { status: 204 };
      },
    }),
    route({
      method: 'POST',
      path: '/v1/catalogues/update',
      summary: 'Reads the named catalogues again, or all',
      request: updateCatalogues,
      answers: { 204: null },
      handle: async ({ body, signal }) => {
        await catalogue.update(body.names, signal);
        return { status: 204 };
      },
    }),
  ];
}
