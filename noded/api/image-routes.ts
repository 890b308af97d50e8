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
import type { ImageCatalogue } from '../catalogue/image-catalogue.ts';
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
    question('/v1/images', 'Images by name', imageInfo.array(), () => catalogue.list()),
    question('/v1/catalogues', 'Catalogues of images', catalogueInfo.array(), () =>
      catalogue.catalogues(),
    ),
    route({
      method: 'POST',
      path: '/v1/images/resolve',
      summary: 'Where an image is now, and its checksum',
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
      summary: 'Keeps a copy of a file of this node under a name',
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
      summary: 'Forgets an imported image, or a catalogue',
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
      summary: 'Adds a catalogue: a file of this node, or an https URL',
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
      summary: 'Reads catalogues anew; all of them without names',
      request: updateCatalogues,
      answers: { 204: null },
      handle: async ({ body, signal }) => {
        await catalogue.update(body.names, signal);
        return { status: 204 };
      },
    }),
  ];
}
