import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type {
  ActiveDisk,
  ClusterInfo,
  CryptoProgress,
  CryptoRenewed,
  DoctorReport,
  DryRunAccepted,
  ListedNode,
  ListedOrphan,
  ExportInfo,
  JoinTokenMade,
  NodeInfo,
  NodeOs,
  OsInfo,
} from '#shared/contract/api.ts';
import type {
  BootArchiveInfo,
  BootEnvInfo,
  BootParamInfo,
  BootPlanInfo,
  BootTemplateInfo,
} from '#shared/contract/boot-objects.ts';
import type { HookBook } from '#shared/contract/hook-book.ts';
import type {
  InstanceInfo,
  InstanceSummary,
  InstanceSummaryField,
} from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import type {
  CatalogueInfo,
  ImageInfo,
  ImportImage,
  ResolvedImage,
} from '#shared/contract/image-catalogue.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import type { NetworkInfo } from '#shared/contract/network.ts';
import type { ProfileInfo } from '#shared/contract/profile.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import {
  ANSWER_TIMEOUT_MS,
  ask,
  askLines,
  orFailure,
  raw,
  readerOf,
  succeed,
  type SchemaOf,
} from './ask-node.ts';
import { call, type CallOptions, type Endpoint } from './connection.ts';
import { discard, loadAnswers, readAll, withAnswers } from './read-answer.ts';

/** Every record is sealed anew before it answers. */
const RENEWAL_TIMEOUT_MS = 3_600_000;
/** Catalogues come from elsewhere, and an image may have to be copied. */
const CATALOGUE_TIMEOUT_MS = 1_800_000;

/** A readable path of an instance's metadata. */
export interface MetadataAnswer {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * The node daemon's API, every answer validated. All methods throw NODED_UNREACHABLE, and
 * CommandFailure with the API's own code.
 */
export interface NodeClient {
  node(): Promise<NodeInfo>;
  nodes(): Promise<ListedNode[]>;
  removeNode(name: string, options: { readonly forgetInstances: boolean }): Promise<void>;
  doctor(): Promise<DoctorReport>;
  cluster(): Promise<ClusterInfo>;
  /** @param skip nodes that are left behind */
  renewCrypto(skip: readonly string[]): Promise<CryptoRenewed>;
  makeJoinToken(lifetimeS: number): Promise<JoinTokenMade>;
  /** Progress of the renewal that the node which is asked carries out, or carried out last. */
  cryptoProgress(): Promise<CryptoProgress>;
  instances(): Promise<InstanceInfo[]>;
  /** All that is known of all instances, in slices as they come. */
  instanceSlices(): AsyncIterable<readonly InstanceInfo[]>;
  /** The fields that are asked for of all instances, in slices as they come. */
  instanceSummaries<Field extends InstanceSummaryField>(
    fields: readonly Field[],
  ): AsyncIterable<readonly Pick<InstanceSummary, Field>[]>;
  instance(name: string): Promise<InstanceInfo>;
  /** Machines that run without a record. */
  orphans(): Promise<ListedOrphan[]>;
  operatingSystems(): Promise<OsInfo[]>;
  /** OS definitions of each node. */
  operatingSystemsOfNodes(): Promise<NodeOs[]>;
  operatingSystem(name: string): Promise<OsInfo>;
  exports(): Promise<ExportInfo[]>;
  images(): Promise<ImageInfo[]>;
  catalogues(): Promise<CatalogueInfo[]>;
  /** Where an image with that name is now. */
  resolveImage(name: string): Promise<ResolvedImage>;
  importImage(request: ImportImage): Promise<void>;
  /** Removes an imported image or a catalogue. */
  removeImage(name: string): Promise<void>;
  addCatalogue(name: string, source: string): Promise<void>;
  updateCatalogues(names: readonly string[]): Promise<void>;
  profiles(): Promise<ProfileInfo[]>;
  networks(): Promise<NetworkInfo[]>;
  bootEnvs(): Promise<BootEnvInfo[]>;
  bootTemplates(): Promise<BootTemplateInfo[]>;
  bootArchives(): Promise<BootArchiveInfo[]>;
  bootParams(): Promise<BootParamInfo[]>;
  /** What a BootEnv is for an instance. */
  bootPlan(instance: string, bootEnv: string): Promise<BootPlanInfo>;
  jobs(): Promise<JobRecord[]>;
  job(id: number): Promise<JobRecord>;
  /** Submits a job and gives its id. */
  submit(opcode: Opcode): Promise<number>;
  /** Checks and prerequisites only. */
  dryRun(opcode: Opcode): Promise<DryRunAccepted>;
  cancelJob(id: number): Promise<void>;
  /** NDJSON of JobEvent. */
  jobEvents(id: number, signal?: AbortSignal): Promise<IncomingMessage>;
  /** NDJSON of GuestProgress. */
  guestProgress(name: string, signal: AbortSignal): Promise<IncomingMessage>;
  /** text/plain, the install log. */
  instanceLog(
    name: string,
    which: 'log' | 'audit',
    follow: boolean,
    signal?: AbortSignal,
  ): Promise<IncomingMessage>;
  metadata(name: string, path: string): Promise<MetadataAnswer>;
  /**
   * Bytes that the guest wrote, waiting up to `waitS` seconds; null when there are none. They are
   * consumed.
   */
  receive(name: string, waitS: number, signal?: AbortSignal): Promise<Buffer | null>;
  /**
   * Puts bytes where the guest reads: true, or the seconds after which to try again when its queue
   * is full.
   */
  send(name: string, bytes: Buffer): Promise<true | number>;
  /** The hooks of its next installation. */
  hooks(name: string): Promise<HookBook>;
  /** Where the host finds the disks of an instance. */
  disks(name: string): Promise<ActiveDisk[]>;
  /** Ends the session tokens of the instance's ec2 dialect. */
  replaceTokens(name: string): Promise<void>;
  connectPort(name: string, port: number): Promise<Socket>;
  console(name: string): Promise<Socket>;
}

export function createNodeClient(endpoint: Endpoint): NodeClient {
  const get = <T>(path: string, schema: SchemaOf<T>): Promise<T> => ask(endpoint, { path }, schema);
  const change = async (path: string, request: object): Promise<void> => {
    const body = bodyOf(request);
    const idleTimeoutMs = CATALOGUE_TIMEOUT_MS;
    await discard(await succeed(endpoint, { method: 'POST', path, body, idleTimeoutMs }));
  };
  const instanceSlices = (): AsyncIterable<readonly InstanceInfo[]> =>
    askLines(endpoint, '/v1/instances?lines=1', (of) => of.instanceInfo);
  const instancePath = (name: string): string => `/v1/instances/${encodeName(name)}`;

  return {
    node: () => get('/v1/node', (of) => of.nodeInfo),
    nodes: () => get('/v1/nodes', (of) => of.listedNode.array()),
    async removeNode(name, { forgetInstances }) {
      const query = forgetInstances ? '?forget-instances=1' : '';
      const path = `/v1/nodes/${encodeName(name)}${query}`;
      await discard(await succeed(endpoint, { method: 'DELETE', path }));
    },
    doctor: () => get('/v1/doctor', (of) => of.doctorReport),
    cluster: () => get('/v1/cluster', (of) => of.clusterInfo),
    renewCrypto: (skip) =>
      ask(
        endpoint,
        {
          method: 'POST',
          path: '/v1/cluster/renew-crypto',
          body: bodyOf({ skip }),
          idleTimeoutMs: RENEWAL_TIMEOUT_MS,
        },
        (of) => of.cryptoRenewed,
      ),
    makeJoinToken: (lifetimeS) =>
      ask(
        endpoint,
        { method: 'POST', path: '/v1/cluster/join-tokens', body: bodyOf({ lifetimeS }) },
        (of) => of.joinTokenMade,
      ),
    cryptoProgress: () => get('/v1/cluster/renew-crypto', (of) => of.cryptoProgress),
    instances: async () => (await Array.fromAsync(instanceSlices())).flat(),
    instanceSlices,
    instanceSummaries(fields) {
      const path = `/v1/instance-summaries?fields=${fields.join(',')}`;
      const mask: { [Field in InstanceSummaryField]?: true } = {};
      for (const field of fields) mask[field] = true;
      type Asked = Pick<InstanceSummary, (typeof fields)[number]>;
      return askLines<Asked>(endpoint, path, (of) => of.instanceSummary.pick(mask));
    },
    instance: (name) => get(instancePath(name), (of) => of.instanceInfo),
    orphans: () => get('/v1/orphans', (of) => of.listedOrphan.array()),
    operatingSystems: () => get('/v1/os', (of) => of.osInfo.array()),
    operatingSystemsOfNodes: () => get('/v1/os-of-nodes', (of) => of.nodeOs.array()),
    operatingSystem: (name) => get(`/v1/os/${encodeName(name)}`, (of) => of.osInfo),
    exports: () => get('/v1/exports', (of) => of.exportInfo.array()),
    networks: () => get('/v1/networks', (of) => of.networkInfo.array()),
    profiles: () => get('/v1/profiles', (of) => of.profileInfo.array()),
    bootEnvs: () => get('/v1/bootenvs', (of) => of.bootEnvInfo.array()),
    bootTemplates: () => get('/v1/boot-templates', (of) => of.bootTemplateInfo.array()),
    bootParams: () => get('/v1/boot-params', (of) => of.bootParamInfo.array()),
    bootArchives: () => get('/v1/boot-archives', (of) => of.bootArchiveInfo.array()),
    bootPlan: (instance, bootEnv) =>
      get(
        `${instancePath(instance)}/boot-plan?bootenv=${encodeURIComponent(bootEnv)}`,
        (of) => of.bootPlanInfo,
      ),
    images: () => get('/v1/images', (of) => of.imageInfo.array()),
    catalogues: () => get('/v1/catalogues', (of) => of.catalogueInfo.array()),
    resolveImage: (name) =>
      ask(
        endpoint,
        {
          ...{ method: 'POST', path: '/v1/images/resolve', body: bodyOf({ name }) },
          idleTimeoutMs: CATALOGUE_TIMEOUT_MS,
        },
        (of) => of.resolvedImage,
      ),
    importImage: (request) => change('/v1/images/import', request),
    removeImage: (name) => change('/v1/images/remove', { name }),
    addCatalogue: (name, source) => change('/v1/catalogues', { name, source }),
    updateCatalogues: (names) => change('/v1/catalogues/update', { names }),
    jobs: () => get('/v1/jobs', (of) => of.jobRecord.array()),
    job: (id) => get(`/v1/jobs/${id}`, (of) => of.jobRecord),
    async submit(opcode) {
      const body = bodyOf(opcode);
      return (
        await ask(endpoint, { method: 'POST', path: '/v1/jobs', body }, (of) => of.jobSubmitted)
      ).id;
    },
    // Waits for the locks of the instance as a job does, so it has no limit of its own.
    async dryRun(opcode) {
      const path = '/v1/jobs?dry-run=1';
      const response = await succeed(endpoint, { method: 'POST', path, body: bodyOf(opcode) });
      const read = await readerOf<DryRunAccepted>(response, path, (of) => of.dryRunAccepted);
      return read(await readAll(response));
    },
    async cancelJob(id) {
      await discard(await succeed(endpoint, { method: 'DELETE', path: `/v1/jobs/${id}` }));
    },
    jobEvents: (id, signal) => succeed(endpoint, { path: `/v1/jobs/${id}/events`, signal }),
    guestProgress: (name, signal) =>
      succeed(endpoint, { path: `${instancePath(name)}/boot`, signal }),
    instanceLog: (name, which, follow, signal) =>
      succeed(endpoint, {
        path: `${instancePath(name)}/${which}${follow ? '?follow=1' : ''}`,
        signal,
      }),
    async metadata(name, path) {
      const leaf = path.replace(/\?partial=true$/, '');
      const segments = leaf.split('/').map(encodeURIComponent).join('/');
      const query = leaf === path ? '' : '?partial=1';
      const response = await call(endpoint, {
        path: `${instancePath(name)}/metadata/${segments}${query}`,
        idleTimeoutMs: ANSWER_TIMEOUT_MS,
      });
      const isJson = response.headers['content-type']?.startsWith('application/json') ?? false;
      // What metad says to the guest has no error code; what noded says to us has.
      if ((response.statusCode ?? 500) >= 400 && !isJson) {
        throw await refusedToGuest(response, path);
      }
      await orFailure(response);
      return {
        contentType: response.headers['content-type'] ?? 'application/octet-stream',
        bytes: await readAll(response),
      };
    },
    async receive(name, waitS, signal) {
      const path = `${instancePath(name)}/queue?wait=${waitS}`;
      const response = await succeed(endpoint, { path, signal });
      const bytes = await readAll(response);
      return response.statusCode === 204 || bytes.length === 0 ? null : bytes;
    },
    async send(name, bytes) {
      const response = await withAnswers(
        call(endpoint, {
          method: 'POST',
          path: `${instancePath(name)}/queue`,
          body: { type: 'application/octet-stream', bytes },
          idleTimeoutMs: ANSWER_TIMEOUT_MS,
        }),
      );
      if (response.statusCode === 429) {
        const answers = await loadAnswers();
        const answer = answers.refusal.safeParse(parseJson(await readAll(response)));
        return Math.max(
          1,
          answers.fullChannel.safeParse(answer.data?.details).data?.retryAfter ?? 1,
        );
      }
      await discard(await orFailure(response));
      return true;
    },
    hooks: (name) => get(`${instancePath(name)}/hooks`, (of) => of.hookBook),
    disks: (name) => get(`${instancePath(name)}/disks`, (of) => of.activeDisk.array()),
    async replaceTokens(name) {
      const path = `${instancePath(name)}/tokens`;
      const idleTimeoutMs = ANSWER_TIMEOUT_MS;
      await discard(await succeed(endpoint, { method: 'DELETE', path, idleTimeoutMs }));
    },
    connectPort: (name, port) => raw(endpoint, `${instancePath(name)}/connect/${port}`),
    console: (name) => raw(endpoint, `${instancePath(name)}/console`),
  };
}

async function refusedToGuest(response: IncomingMessage, path: string): Promise<AppError> {
  const text = (await readAll(response)).toString('utf8').trim();
  const status = response.statusCode ?? 500;
  return new AppError(
    status === 404 ? 'NOT_FOUND' : status === 410 ? 'SECRET_LOST' : 'METAD_REFUSED',
    `the guest gets ${status} for /${path}${text === '' ? '' : `: ${text.slice(0, 300)}`}`,
    { hint: 'gnt-instance metadata NAME without a path lists the entries' },
  );
}

function bodyOf(value: object): NonNullable<CallOptions['body']> {
  return { type: 'application/json', bytes: Buffer.from(JSON.stringify(value)) };
}

/** A name as a part of a path. @throws AppError USAGE for an empty one, which is no part */
function encodeName(name: string): string {
  if (name !== '') return encodeURIComponent(name);
  throw new AppError('USAGE', 'a name is empty', { hint: 'Give the name of one, or leave it out' });
}
