import { z } from 'zod';
import {
  activeDisk,
  clusterInfo,
  identityKeysRenewed,
  identityPublished,
  renewIdentityKeys,
  cryptoProgress,
  cryptoRenewed,
  doctorReport,
  dryRunAccepted,
  exportInfo,
  jobSubmitted,
  joinTokenMade,
  keyStep,
  listedNode,
  listedOrphan,
  makeJoinToken,
  nodeInfo,
  nodeOs,
  nodeReport,
  osInfo,
  openWeb,
  renewCrypto,
} from './api.ts';
import { applianceUsers } from './appliance-choice.ts';
import { bootEnvName } from './boot-env.ts';
import {
  bootArchiveInfo,
  bootEnvInfo,
  bootParamInfo,
  bootPlanInfo,
  bootTemplateInfo,
} from './boot-objects.ts';
import { MAX_MESSAGE_BYTES } from './channel-message.ts';
import {
  BYTES,
  type Endpoint,
  type Endpoints,
  EVENTS,
  flag,
  jsonText,
  LINES,
  type Method,
  TEXT,
  wholeNumber,
} from './endpoint.ts';
import { hookBook } from './hook-book.ts';
import { MAX_PLACEMENT_CHARACTERS, MAX_PLACEMENT_LINES, placementLines } from './host-room.ts';
import {
  addCatalogue,
  catalogueInfo,
  imageInfo,
  importImage,
  removeImage,
  resolvedImage,
  resolveImage,
  updateCatalogues,
} from './image-catalogue.ts';
import { instanceInfo, instanceSummaryField } from './instance.ts';
import { jobRecord } from './job.ts';
import { OFFSET_HEADER } from './metad-control.ts';
import { moveEndpoints, moveStreamEndpoints } from './move-endpoints.ts';
import { networkInfo } from './network.ts';
import { opcode } from './opcode.ts';
import { profileInfo } from './profile.ts';
import { giveRelaySecret, relaySecretGiven } from './relay.ts';
import { submitter } from './submitter.ts';

/** Characters of a path (PATH_MAX). */
const MAX_PATH = 4096;
/** Seconds that one request may wait for bytes of the channel. */
const MAX_WAIT_S = 60;

export const nodeEndpoints = {
  'GET /v1/node': {
    summary: 'Describes this node',
    answers: { 200: nodeInfo },
    forPeers: true,
    access: 'cluster',
  },
  'GET /v1/nodes': {
    summary: 'Lists all nodes',
    answers: { 200: listedNode.array() },
    access: 'cluster',
  },
  'DELETE /v1/nodes/{name}': {
    summary: 'Removes a node that will not return from the cluster',
    query: z.object({ 'forget-instances': flag('1: remove its instances too') }),
    answers: { 204: null },
    access: 'root',
  },
  'GET /v1/doctor': {
    summary: 'Checks whether installations can work on this node',
    answers: { 200: doctorReport },
    forPeers: true,
    access: 'cluster',
  },
  'GET /v1/doctor-of-nodes': {
    summary: 'Checks all nodes as /v1/doctor does',
    answers: { 200: nodeReport.array() },
    access: 'cluster',
  },
  'GET /metrics': {
    summary: 'Returns the metrics of both daemons for Prometheus',
    answers: { 200: TEXT },
    access: 'cluster',
  },
} as const satisfies Endpoints;

export const clusterEndpoints = {
  'GET /v1/cluster': {
    summary: 'Describes the cluster and its settings',
    answers: { 200: clusterInfo },
    access: 'cluster',
  },
  'GET /v1/appliances/{name}/users': {
    summary: 'Lists the cluster, OS definitions and instances that use an appliance',
    answers: { 200: applianceUsers },
    access: 'cluster',
  },
  'GET /v1/cluster/renew-crypto': {
    summary: 'Reports the progress of a renewal of the cluster key that this node runs',
    answers: { 200: cryptoProgress },
  },
  'POST /v1/cluster/renew-crypto': {
    summary: 'Renews the cluster key, which seals all records',
    request: renewCrypto,
    answers: { 200: cryptoRenewed },
  },
  'GET /v1/cluster/identity': {
    summary: 'Returns the public identity documents for verifiers',
    answers: { 200: identityPublished },
    access: 'cluster',
  },
  'POST /v1/cluster/identity-keys': {
    summary: 'Renews the identity keys',
    request: renewIdentityKeys,
    answers: { 200: identityKeysRenewed },
  },
  'POST /v1/relays/{name}/secret': {
    summary: 'Gives the secret of a relay to all nodes, which keep it in memory only',
    request: giveRelaySecret,
    answers: { 200: relaySecretGiven },
    forPeers: true,
  },
  'POST /v1/cluster/join-tokens': {
    summary: 'Creates a join token for one node',
    request: makeJoinToken,
    answers: { 200: joinTokenMade },
  },
  'POST /v1/cluster/key-steps': {
    summary: 'Between nodes: carries out one step of a renewal of the cluster key',
    request: keyStep,
    answers: { 204: null },
    forPeers: true,
  },
} as const satisfies Endpoints;

export const instanceEndpoints = {
  'GET /v1/instances': {
    summary: 'Describes all instances',
    query: z.object({ lines: flag('1: one instance per line instead of an array') }),
    answers: { 200: instanceInfo.array() },
    access: 'own',
  },
  'GET /v1/instance-summaries': {
    summary: 'Returns one InstanceSummary per line for each instance, without asking other nodes',
    query: z.object({
      fields: z
        .string()
        .transform((text) => text.split(','))
        .pipe(instanceSummaryField.array())
        .describe('fields of InstanceSummary, separated by commas; default: all')
        .optional(),
    }),
    answers: { 200: LINES },
    access: 'own',
  },
  'GET /v1/own-instances': {
    summary: 'Between nodes: describes the instances of this node, one per line',
    answers: { 200: LINES },
    forPeers: true,
  },
  'GET /v1/machines/events': {
    summary: 'Returns the running instances and then each change, one MachineChanges per line',
    answers: { 200: LINES },
    forPeers: true,
  },
  'GET /v1/orphans': {
    summary: 'Lists orphans. INSTANCE_ADOPT and INSTANCE_REMOVE resolve them',
    answers: { 200: listedOrphan.array() },
    forPeers: true,
    access: 'cluster',
  },
  'GET /v1/instances/{name}': {
    summary: 'Describes one instance. Private values are replaced; secrets appear by name only',
    answers: { 200: instanceInfo },
    forPeers: true,
    access: 'instance',
  },
  'GET /v1/instances/{name}/log': {
    summary: 'Returns the log of the last installation',
    query: z.object({ follow: flag('1: follow the log') }),
    answers: { 200: TEXT },
    forPeers: true,
    access: 'instance',
  },
  'GET /v1/instances/{name}/audit': {
    summary: 'Returns the audit log of the run lists',
    query: z.object({ follow: flag('1: follow the log while the instance exists') }),
    answers: { 200: TEXT },
    forPeers: true,
    access: 'instance',
  },
  'GET /v1/instances/{name}/hooks': {
    summary: 'Returns the hooks of the next installation in their order',
    answers: { 200: hookBook },
    forPeers: true,
    access: 'instance',
  },
  'GET /v1/instances/{name}/disks': {
    summary: 'Returns the paths of the disks on the host',
    answers: { 200: activeDisk.array() },
    forPeers: true,
  },
} as const satisfies Endpoints;

export const bootEndpoints = {
  'GET /v1/instances/{name}/boot': {
    summary:
      'Returns the boot progress of the guest and each change until the instance stops, one GuestProgress per line',
    answers: { 200: LINES },
    forPeers: true,
    access: 'instance',
  },
} as const satisfies Endpoints;

export const channelEndpoints = {
  'DELETE /v1/instances/{name}/tokens': {
    summary: 'Revokes the session tokens of the dialect ec2',
    answers: { 204: null },
    forPeers: true,
    access: 'instance',
  },
  'GET /v1/instances/{name}/metadata/{*path}': {
    summary: 'Returns metadata as the guest reads it, with secrets replaced',
    query: z.object({ partial: flag('1: return lost secrets as null instead of status 410') }),
    answers: { 200: { type: '*/*' } },
    forPeers: true,
    access: 'instance',
  },
  'GET /v1/instances/{name}/queue': {
    summary: `Reads the bytes that the guest wrote. The header ${OFFSET_HEADER} is the next offset`,
    query: z.object({
      wait: wholeNumber('seconds to wait for bytes', MAX_WAIT_S),
      offset: wholeNumber(
        'return bytes from this offset on and drop earlier ones',
        Number.MAX_SAFE_INTEGER,
      ),
    }),
    answers: { 200: BYTES, 204: null },
    forPeers: true,
  },
  'POST /v1/instances/{name}/queue': {
    summary: 'Queues bytes for the guest, at most 64 KiB, completely or not at all',
    request: { type: BYTES.type, maxBytes: MAX_MESSAGE_BYTES },
    answers: { 204: null },
    forPeers: true,
  },
} as const satisfies Endpoints;

export const imageEndpoints = {
  'GET /v1/images': {
    summary: 'Lists the images of all catalogues',
    answers: { 200: imageInfo.array() },
    access: 'all',
  },
  'GET /v1/catalogues': {
    summary: 'Lists the image catalogues',
    answers: { 200: catalogueInfo.array() },
    access: 'cluster',
  },
  'POST /v1/images/resolve': {
    summary: 'Returns the current source and checksum of an image',
    request: resolveImage,
    answers: { 200: resolvedImage },
    access: 'all',
  },
  'POST /v1/images/import': {
    summary: 'Imports a file of this node as an image',
    request: importImage,
    answers: { 204: null },
    access: 'root',
  },
  'POST /v1/images/remove': {
    summary: 'Removes an imported image or a catalogue',
    request: removeImage,
    answers: { 204: null },
    access: 'cluster',
  },
  'POST /v1/catalogues': {
    summary: 'Adds a catalogue from a file of this node or an HTTPS URL',
    request: addCatalogue,
    answers: { 204: null },
    access: 'root',
  },
  'POST /v1/catalogues/update': {
    summary: 'Reads the named catalogues again, or all',
    request: updateCatalogues,
    answers: { 204: null },
    access: 'cluster',
  },
  'GET /v1/image-contents/{checksum}': {
    summary: 'Between nodes: returns a file of the image cache, by sha256:HEX or sha512:HEX',
    query: z.object({
      offset: wholeNumber('return bytes from this offset on', Number.MAX_SAFE_INTEGER),
    }),
    answers: { 200: BYTES },
    forPeers: true,
  },
} as const satisfies Endpoints;

export const osEndpoints = {
  'GET /v1/os': {
    summary: 'Lists the OS definitions of this node',
    answers: { 200: osInfo.array() },
    forPeers: true,
    access: 'all',
  },
  'GET /v1/os/{name}': {
    summary: 'Describes one OS definition',
    answers: { 200: osInfo },
    forPeers: true,
    access: 'all',
  },
  'GET /v1/os-of-nodes': {
    summary: 'Lists the OS definitions of all nodes',
    answers: { 200: nodeOs.array() },
    access: 'cluster',
  },
} as const satisfies Endpoints;

export const exportEndpoints = {
  'GET /v1/exports': {
    summary: 'Lists the exports on this node',
    query: z.object({
      directory: z
        .string()
        .startsWith('/')
        .max(MAX_PATH)
        .describe('list the exports in this directory instead')
        .optional(),
    }),
    answers: { 200: exportInfo.array() },
    access: 'root',
  },
} as const satisfies Endpoints;

export const objectEndpoints = {
  'GET /v1/profiles': {
    summary: 'Lists the profiles',
    answers: { 200: profileInfo.array() },
    access: 'own',
  },
  'GET /v1/networks': {
    summary: 'Lists the networks with their addresses',
    answers: { 200: networkInfo.array() },
    access: 'own',
  },
  'GET /v1/bootenvs': {
    summary: 'Lists the boot environments',
    answers: { 200: bootEnvInfo.array() },
    access: 'own',
  },
  'GET /v1/boot-templates': {
    summary: 'Lists the templates of boot environments',
    answers: { 200: bootTemplateInfo.array() },
    access: 'cluster',
  },
  'GET /v1/boot-params': {
    summary: 'Lists the params of boot environments',
    answers: { 200: bootParamInfo.array() },
    access: 'cluster',
  },
  'GET /v1/boot-archives': {
    summary: 'Lists the extracted archives of boot environments on this node',
    answers: { 200: bootArchiveInfo.array() },
    access: 'cluster',
  },
  'GET /v1/instances/{name}/boot-plan': {
    summary:
      'Renders every file of a boot environment for an instance, without private and secret values',
    query: z.object({
      bootenv: bootEnvName.describe("default: the instance's own boot environment").optional(),
    }),
    answers: { 200: bootPlanInfo },
    forPeers: true,
    // The query may name any boot environment.
    access: 'cluster',
  },
} as const satisfies Endpoints;

const done = z.object({});

export const jobEndpoints = {
  'POST /v1/jobs': {
    summary: 'Submits an operation as a job',
    query: z.object({
      'dry-run': z
        .enum(['1', 'job'], { error: 'expected 1 or job' })
        .describe('1: check only, with status 200; job: check as a job')
        .optional(),
      // Root has all rights on this socket, so a submitter can only remove rights.
      submitter: jsonText(submitter, 65_536, 'expected a Submitter as JSON')
        .describe('user on whose behalf another node asks, as JSON')
        .optional(),
      placement: jsonText(
        placementLines,
        4 * MAX_PLACEMENT_LINES * MAX_PLACEMENT_CHARACTERS,
        'expected a list of lines as JSON',
      )
        .describe('why another node chose this one for a new instance, as JSON')
        .optional(),
    }),
    request: opcode,
    answers: { 200: dryRunAccepted, 202: jobSubmitted },
    forPeers: true,
    access: 'own',
  },
  'GET /v1/jobs': {
    summary: 'Lists all jobs without their logs',
    answers: { 200: jobRecord.array() },
    access: 'own',
  },
  'GET /v1/jobs/{id}': {
    summary: 'Describes one job',
    answers: { 200: jobRecord },
    forPeers: true,
    access: 'own',
  },
  'DELETE /v1/jobs/{id}': {
    summary: 'Cancels a job',
    answers: { 202: done },
    forPeers: true,
    access: 'own',
  },
  'GET /v1/jobs/{id}/events': {
    summary: 'Returns the events of a job until its end, one JobEvent per line',
    answers: { 200: LINES },
    forPeers: true,
    access: 'own',
  },
} as const satisfies Endpoints;

export const eventEndpoints = {
  'GET /v1/events': {
    summary:
      'Returns changes of the cluster as server-sent events, resumed after the header Last-Event-ID',
    answers: { 200: EVENTS },
    access: 'own',
  },
} as const satisfies Endpoints;

export const webEndpoints = {
  'POST /v1/web': {
    summary: 'Serves the web page on 127.0.0.1 while this request lasts, one WebLink per line',
    request: openWeb,
    answers: { 200: LINES },
  },
} as const satisfies Endpoints;

const documentEndpoints = {
  'GET /v1/openapi.json': {
    summary: 'Returns this API as an OpenAPI document',
    answers: { 200: { type: 'application/json' } },
    access: 'all',
  },
} as const satisfies Endpoints;

export const channelStreamEndpoints = {
  'GET /v1/instances/{name}/connect/{port}': {
    summary: 'Connects to a TCP port of the guest (`Upgrade: tcp`)',
    answers: { 101: null },
    forPeers: true,
  },
  'GET /v1/instances/{name}/console': {
    summary: 'Connects to the serial console (`Upgrade: tcp`)',
    answers: { 101: null },
    forPeers: true,
    access: 'instance',
  },
} as const satisfies Endpoints;

/**
 * The API of the node, in the order of its document. The server has a handler for each key, and the
 * client calls by these keys.
 */
export const endpoints = {
  ...nodeEndpoints,
  ...clusterEndpoints,
  ...instanceEndpoints,
  ...bootEndpoints,
  ...channelEndpoints,
  ...exportEndpoints,
  ...imageEndpoints,
  ...osEndpoints,
  ...objectEndpoints,
  ...moveEndpoints,
  ...jobEndpoints,
  ...eventEndpoints,
  ...webEndpoints,
  ...documentEndpoints,
  ...channelStreamEndpoints,
  ...moveStreamEndpoints,
} as const;

export type AllEndpoints = typeof endpoints;
export type EndpointKey = keyof AllEndpoints;

/** Names of the parameters in a key's path. */
export type ParameterNames<Key extends string> = Key extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `*${infer Tail}` ? Tail : Name) | ParameterNames<Rest>
  : never;

export interface ListedEndpoint extends Endpoint {
  readonly key: EndpointKey;
  readonly method: Method;
  readonly path: string;
}

export function listEndpoints(): readonly ListedEndpoint[] {
  return Object.entries<Endpoint>(endpoints).map(([key, endpoint]) => {
    // The type of the table guarantees the form of its keys.
    const [method, path] = key.split(' ') as [Method, string];
    return { ...endpoint, key: key as EndpointKey, method, path };
  });
}
