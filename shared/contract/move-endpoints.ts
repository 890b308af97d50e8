import { z } from 'zod';
import { BYTES, type Endpoints } from './endpoint.ts';
import { guestHandover } from './guest-handover.ts';
import { machineArrived, machineExpected, machineQuestion } from './migration.ts';
import {
  arrivalBegun,
  arrivalDigests,
  arrivalEnded,
  arrivalRequest,
  MAX_BATCH_BYTES,
  remainsEnded,
} from './move.ts';

const done = z.object({});

/** Requests from the source node of a move to its target. */
export const moveEndpoints = {
  'POST /v1/arrivals/{uuid}/check': {
    summary: 'Between nodes: checks whether this node accepts an instance',
    answers: { 200: done },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/check-machine': {
    summary: 'Between nodes: checks whether this node accepts a running instance',
    request: machineQuestion,
    answers: { 200: done },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/{session}/expect': {
    summary: 'Between nodes: starts the QEMU process that receives a guest',
    request: machineExpected,
    answers: { 200: done },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/{session}/sync': {
    summary: 'Between nodes: syncs the received part of the disks of a running guest',
    answers: { 200: done },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/{session}/metadata': {
    summary: 'Between nodes: hands over the state of a guest in gnt-metad',
    request: guestHandover,
    answers: { 200: done },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/{session}/await': {
    summary: 'Between nodes: waits until a guest has arrived completely',
    answers: { 200: machineArrived },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/begin': {
    summary: 'Between nodes: reserves space for an instance and creates its empty files',
    request: arrivalRequest,
    answers: { 200: arrivalBegun },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/{session}/files/{name}': {
    summary: 'Between nodes: writes data blocks of a file',
    request: { type: BYTES.type, maxBytes: MAX_BATCH_BYTES },
    answers: { 200: done },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/{session}/verify': {
    summary: 'Between nodes: reads all files again, compares and syncs them',
    request: arrivalDigests,
    answers: { 200: done },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/end': {
    summary:
      'Between nodes: installs the received files if the record names this node, else removes them',
    answers: { 200: arrivalEnded },
    forPeers: true,
  },
  'POST /v1/arrivals/{uuid}/end-remains': {
    summary: 'Between nodes: removes remains of moves, for the node that owns the instance',
    answers: { 200: remainsEnded },
    forPeers: true,
  },
} as const satisfies Endpoints;

export const moveStreamEndpoints = {
  'GET /v1/arrivals/{uuid}/{session}/streams/{name}': {
    summary: 'Between nodes: receives a disk or the memory of a guest',
    answers: { 101: null },
    forPeers: true,
  },
  'GET /v1/arrivals/{uuid}/{session}/files/{name}': {
    summary: 'Between nodes: receives a file of a stopped instance',
    answers: { 101: null },
    forPeers: true,
  },
} as const satisfies Endpoints;
