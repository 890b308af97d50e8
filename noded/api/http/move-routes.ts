import { z } from 'zod';
import {
  arrivalBegun,
  arrivalDigests,
  arrivalEnded,
  arrivalRequest,
  remainsEnded,
} from '#shared/contract/move.ts';
import { guestHandover } from '#shared/contract/guest-handover.ts';
import { uuid } from '#shared/contract/primitives.ts';
import { machineArrived, machineExpected, machineQuestion } from '#shared/contract/migration.ts';
import type { MigrationTarget } from '../../cluster/migration/migration-target-contract.ts';
import { MAX_BATCH_BYTES } from '../../storage/data-blocks.ts';
import { route, type AnyApiRoute, type StreamRoute } from './api-route.ts';
import { parseInput } from './http-errors.ts';

export interface MoveRoutesDependencies {
  readonly migrationTarget: MigrationTarget;
}

const done = z.object({});
const DONE = { status: 200, body: {} } as const;

/** What the node that has an instance asks the one that gets it. */
export function moveRoutes({ migrationTarget }: MoveRoutesDependencies): readonly AnyApiRoute[] {
  const meant = (params: { readonly uuid: string }): string => parseInput(uuid, params.uuid);
  return [
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/check',
      summary: 'Between nodes: checks whether this node accepts an instance',
      answers: { 200: done },
      handle: async ({ params, signal }) => {
        await migrationTarget.check(meant(params), signal);
        return DONE;
      },
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/check-machine',
      summary: 'Between nodes: checks whether this node accepts a running instance',
      request: machineQuestion,
      answers: { 200: done },
      handle: async ({ params, body, signal }) => {
        await migrationTarget.check(meant(params), signal, body.nature);
        return DONE;
      },
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/{session}/expect',
      summary: 'Between nodes: starts the QEMU process that receives a guest',
      request: machineExpected,
      answers: { 200: done },
      handle: async ({ params, body, from, signal }) => {
        await migrationTarget.expect({ ...params, uuid: meant(params), from }, body, signal);
        return DONE;
      },
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/{session}/sync',
      summary: 'Between nodes: syncs the received part of the disks of a running guest',
      answers: { 200: done },
      handle: async ({ params, from }) => {
        await migrationTarget.sync({ ...params, uuid: meant(params), from });
        return DONE;
      },
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/{session}/metadata',
      summary: 'Between nodes: hands over the state of a guest in gnt-metad',
      request: guestHandover,
      answers: { 200: done },
      handle: async ({ params, body, from }) => {
        await migrationTarget.handOver({ ...params, uuid: meant(params), from }, body);
        return DONE;
      },
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/{session}/await',
      summary: 'Between nodes: waits until a guest has arrived completely',
      answers: { 200: machineArrived },
      handle: async ({ params, from, signal }) => ({
        status: 200,
        body: {
          serialNo: await migrationTarget.awaitGuest(
            { ...params, uuid: meant(params), from },
            signal,
          ),
        },
      }),
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/begin',
      summary: 'Between nodes: reserves space for an instance and creates its empty files',
      request: arrivalRequest,
      answers: { 200: arrivalBegun },
      handle: async ({ params, body, from, signal }) => ({
        status: 200,
        body: await migrationTarget.begin({ uuid: meant(params), from }, body.files, signal),
      }),
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/{session}/files/{name}',
      summary: 'Between nodes: writes data blocks of a file',
      request: { type: 'application/octet-stream', maxBytes: MAX_BATCH_BYTES },
      answers: { 200: done },
      handle: async ({ params, body, from }) => {
        await migrationTarget.write({ ...params, uuid: meant(params), from }, body);
        return DONE;
      },
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/{session}/verify',
      summary: 'Between nodes: reads all files again, compares and syncs them',
      request: arrivalDigests,
      answers: { 200: done },
      handle: async ({ params, body, from, signal }) => {
        await migrationTarget.verify(
          { ...params, uuid: meant(params), from },
          body.digests,
          signal,
        );
        return DONE;
      },
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/end',
      summary:
        'Between nodes: installs the received files if the record names this node, else removes them',
      answers: { 200: arrivalEnded },
      handle: async ({ params, from }) => ({
        status: 200,
        body: await migrationTarget.end({ uuid: meant(params), from }),
      }),
    }),
    route({
      method: 'POST',
      path: '/v1/arrivals/{uuid}/end-remains',
      summary: 'Between nodes: removes remains of moves, for the node that owns the instance',
      answers: { 200: remainsEnded },
      handle: async ({ params, from }) => ({
        status: 200,
        body: await migrationTarget.endRemains({ uuid: meant(params), from }),
      }),
    }),
  ];
}

/** What QEMU says to QEMU while a guest moves. */
export function moveStreams({ migrationTarget }: MoveRoutesDependencies): readonly StreamRoute[] {
  return [
    {
      path: '/v1/arrivals/{uuid}/{session}/streams/{name}',
      summary: 'Between nodes: receives a disk or the memory of a guest',
      open: ({ uuid: id, session = '', name = '' }) =>
        migrationTarget.openStream({ uuid: parseInput(uuid, id), session, name }),
    },
  ];
}
