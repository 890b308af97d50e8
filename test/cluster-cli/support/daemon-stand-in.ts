import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type {
  ApiError,
  ClusterInfo,
  DoctorReport,
  ListedNode,
  NodeReport,
  ExportInfo,
  ListedOrphan,
  NodeOs,
  OsInfo,
} from '#shared/contract/api.ts';
import {
  instanceSummary,
  type GuestProgress,
  type InstanceInfo,
} from '#shared/contract/instance.ts';
import type { HookBook } from '#shared/contract/hook-book.ts';
import type { JobEvent, JobRecord } from '#shared/contract/job.ts';
import { opcode as opcodeSchema, type Opcode } from '#shared/contract/opcode.ts';
import { redactOpcode } from '#shared/contract/redact-opcode.ts';
import type { ResolvedImage } from '#shared/contract/image-catalogue.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { NOW_MS, sampleJob } from '../../lab/sample-job.ts';
import { sampleCluster, sampleNode } from './samples.ts';

/**
 * The node's API without a daemon, to observe requests and output of commands. It uses the
 * contract's types over a real unix socket. Changes of instances are tested with the real daemon.
 */
export interface DaemonStandIn {
  readonly root: string;
  /** Received opcodes with all values. */
  readonly submitted: Opcode[];
  readonly dryRuns: Opcode[];
  readonly canceled: number[];
  /** Instances whose session tokens were revoked. */
  readonly tokensReplaced: string[];
  readonly instances: InstanceInfo[];
  readonly orphans: ListedOrphan[];
  readonly exports: ExportInfo[];
  readonly jobs: JobRecord[];
  readonly operatingSystems: OsInfo[];
  otherNodesOs: readonly NodeOs[];
  /** Bytes that were sent to a guest. */
  readonly sent: Buffer[];
  /** Bytes from the guest. The next request takes them. */
  readonly fromGuest: Buffer[];
  report: DoctorReport;
  otherReports: readonly NodeReport[];
  otherNodes: readonly ListedNode[];
  cluster: ClusterInfo;
  /** The answer for every image name. */
  image: ResolvedImage | null;
  /** Returns the events of a submitted job; `end` is added if it is missing. */
  script: (job: JobRecord, opcode: Opcode) => AsyncIterable<JobEvent> | Iterable<JobEvent>;
  /** Refuses a submission. */
  refuse: (opcode: Opcode, isDryRun: boolean) => (ApiError & { readonly status: number }) | null;
  /** Handles a raw connection. */
  onRaw: (socket: Socket, path: string) => void;
  hookBook: HookBook;
  /** Lines after the guest's present progress, on boot streams. */
  readonly progress: GuestProgress[];
  installLog: string;
  /** Number of requests that find the channel closed. */
  closedFor: number;
  /** Other answers, by `GET /v1/networks`; null: no content. */
  readonly answers: Map<string, unknown>;
  /** Requests for those answers that change something. */
  readonly changing: string[];
  /** The next event stream is cut after this many events. */
  cutAfterEvents: number;
  close(): Promise<void>;
}

export async function startDaemonStandIn(): Promise<DaemonStandIn> {
  const root = await mkdtemp(join(tmpdir(), 'gnt-cli-'));
  const socketPath = createRootPaths(root).nodedSocket;
  await mkdir(dirname(socketPath), { recursive: true });
  const opcodes = new Map<number, Opcode>();
  const standIn: DaemonStandIn = {
    root,
    submitted: [],
    dryRuns: [],
    canceled: [],
    tokensReplaced: [],
    instances: [],
    orphans: [],
    exports: [],
    jobs: [],
    operatingSystems: [],
    otherNodesOs: [],
    sent: [],
    fromGuest: [],
    report: { ok: true, findings: [] },
    otherReports: [],
    otherNodes: [],
    hookBook: { stages: [], remarks: [] },
    progress: [],
    cluster: sampleCluster(),
    image: null,
    script: (job) => [end({ ...job, status: 'success', endedAtMs: NOW_MS + 10 })],
    refuse: () => null,
    onRaw: (socket) => socket.end(),
    installLog: '',
    closedFor: 0,
    answers: new Map(),
    changing: [],
    cutAfterEvents: Infinity,
    close: async () => {
      // The server waits for upgraded sockets, but closeAllConnections does not close them.
      for (const socket of rawSockets) socket.destroy();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(root, { recursive: true });
    },
  };
  const rawSockets = new Set<Socket>();
  const server = createServer((request, response) => {
    void answer(standIn, opcodes, request, response);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    rawSockets.add(socket);
    socket.on('close', () => rawSockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const name = /^\/v1\/instances\/([^/]+)\//.exec(request.url ?? '')?.[1];
    if (!standIn.instances.some((instance) => instance.name === name)) {
      const body = JSON.stringify(notFound(name ?? ''));
      socket.end(
        `HTTP/1.1 404 Not Found\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
      return;
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    standIn.onRaw(socket, request.url ?? '');
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return standIn;
}

export function end(job: JobRecord): JobEvent {
  return { type: 'end', atMs: job.endedAtMs ?? NOW_MS, job };
}

async function answer(
  standIn: DaemonStandIn,
  opcodes: Map<number, Opcode>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://noded');
  const [, , kind = '', nameText = '', rest = ''] = url.pathname.split('/');
  const name = decodeURIComponent(nameText);
  const json = (status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  const body = await readBody(request);
  const other = standIn.answers.get(`${request.method} ${url.pathname}`);
  if (other !== undefined) {
    if (request.method !== 'GET')
      standIn.changing.push(
        `${request.method} ${url.pathname}${url.search} ${body.toString()}`.trimEnd(),
      );
    return other === null ? void response.writeHead(204).end() : json(200, other);
  }
  if (kind === 'jobs')
    return answerJobs(standIn, opcodes, { request, response, url, name, rest, body, json });
  switch (`${request.method} ${kind}`) {
    case 'GET node':
      return json(200, sampleNode());
    case 'GET nodes':
      return json(200, [sampleNode(), ...standIn.otherNodes]);
    case 'GET instance-summaries': {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      const fields = url.searchParams.get('fields')?.split(',');
      const summaries = standIn.instances.map((each) => {
        const told = Object.entries(instanceSummary.parse(each));
        return Object.fromEntries(told.filter(([field]) => fields?.includes(field) ?? true));
      });
      response.end(summaries.map((each) => `${JSON.stringify(each)}\n`).join(''));
      return;
    }
    case 'GET exports':
      return json(200, standIn.exports);
    case 'GET orphans':
      return json(200, standIn.orphans);
    case 'GET doctor':
      return json(200, standIn.report);
    case 'GET doctor-of-nodes':
      return json(200, [
        { node: sampleNode().name, report: standIn.report },
        ...standIn.otherReports,
      ]);
    case 'GET cluster':
      return json(200, standIn.cluster);
    case 'POST images':
      return standIn.image === null
        ? json(404, { ...notFound(name), code: 'IMAGE_NOT_FOUND' })
        : json(200, standIn.image);
    case 'GET os-of-nodes':
      return json(200, [
        { node: sampleNode().name, operatingSystems: standIn.operatingSystems },
        ...standIn.otherNodesOs,
      ]);
    case 'GET os': {
      if (name === '') return json(200, standIn.operatingSystems);
      const os = standIn.operatingSystems.find((each) => each.name === name);
      return os ? json(200, os) : json(404, { ...notFound(name), code: 'OS_NOT_FOUND' });
    }
    default:
      return answerInstance(standIn, { request, response, url, name, rest, body, json });
  }
}

interface InstanceRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly name: string;
  readonly rest: string;
  readonly body: Buffer;
  readonly json: (status: number, body: unknown) => void;
}

function answerJobs(
  standIn: DaemonStandIn,
  opcodes: Map<number, Opcode>,
  { request, response, url, name, rest, body, json }: InstanceRequest,
): void | Promise<void> {
  if (request.method === 'POST') {
    return submit(standIn, opcodes, JSON.parse(body.toString('utf8')), url, json);
  }
  if (request.method === 'DELETE') {
    standIn.canceled.push(Number(name));
    return json(202, {});
  }
  if (name === '') return json(200, standIn.jobs);
  const job = standIn.jobs.find((each) => each.id === Number(name));
  if (!job) return json(404, { ...notFound(name), code: 'JOB_NOT_FOUND' });
  if (rest !== 'events') return json(200, job);
  return streamEvents(standIn, job, opcodes.get(job.id), response);
}

function answerInstance(standIn: DaemonStandIn, asked: InstanceRequest): void {
  const { request, response, name, rest, json } = asked;
  if (name === '' && asked.url.searchParams.get('lines') === '1') {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.end(standIn.instances.map((each) => `${JSON.stringify(each)}\n`).join(''));
    return;
  }
  if (name === '') return json(200, standIn.instances);
  const instance = standIn.instances.find((each) => each.name === name);
  if (!instance) return json(404, notFound(name));
  if (rest === '') return json(200, instance);
  if (rest === 'disks') {
    const disks = instance.disks.map((disk, index) => ({
      index,
      name: disk.name,
      sizeBytes: disk.sizeBytes,
      path: `/var/lib/gnt/disks/${instance.uuid}/disk${index}.raw`,
    }));
    return json(200, disks);
  }
  if (rest === 'tokens' && request.method === 'DELETE') {
    standIn.tokensReplaced.push(name);
    response.writeHead(204).end();
    return;
  }
  if (rest === 'hooks') return json(200, standIn.hookBook);
  if (rest === 'boot') {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    // No further change follows; the stream ends with its reader.
    const { running, boot } = instance;
    const now = { isRunning: running !== null, readyAtMs: running?.readyAtMs ?? null, boot };
    for (const line of [now, ...standIn.progress]) response.write(`${JSON.stringify(line)}\n`);
    return;
  }
  if (rest === 'log' || rest === 'audit') {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.write(standIn.installLog);
    // A followed log ends with its reader.
    if (!asked.url.searchParams.has('follow')) response.end();
    return;
  }
  if (rest === 'metadata') {
    const path = asked.url.pathname.split('/').slice(5).join('/');
    if (path === 'missing') {
      return json(404, {
        code: 'NOT_FOUND',
        message: 'web1 has no content at /missing',
        details: {},
      });
    }
    if (path === 'lost') {
      response.writeHead(410, { 'content-type': 'text/plain' });
      response.end('the secret is gone\n');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
    response.end(path === '' ? 'ganeti/\nlatest/' : `content of ${path}${asked.url.search}`);
    return;
  }
  if (standIn.closedFor > 0) {
    standIn.closedFor -= 1;
    return json(409, { code: 'INSTANCE_STATE', message: 'closed', hint: null, details: {} });
  }
  if (request.method === 'POST') {
    standIn.sent.push(asked.body);
    response.writeHead(204).end();
    return;
  }
  const bytes = standIn.fromGuest.shift();
  if (bytes === undefined) {
    // A request with a wait is not answered at once.
    const pauseMs = asked.url.searchParams.get('wait') === '0' ? 0 : 100;
    setTimeout(() => response.writeHead(204).end(), pauseMs);
    return;
  }
  response.writeHead(200, { 'content-type': 'application/octet-stream' });
  response.end(bytes);
}

function submit(
  standIn: DaemonStandIn,
  opcodes: Map<number, Opcode>,
  input: unknown,
  url: URL,
  json: (status: number, body: unknown) => void,
): void {
  const parsed = opcodeSchema.parse(input);
  const isDryRun = url.searchParams.get('dry-run') === '1';
  const refusal = standIn.refuse(parsed, isDryRun);
  if (refusal) {
    const { status, ...error } = refusal;
    json(status, error);
    return;
  }
  if (isDryRun) {
    standIn.dryRuns.push(parsed);
    json(200, { ok: true, hooks: standIn.hookBook });
    return;
  }
  standIn.submitted.push(parsed);
  const job = sampleJob({
    id: standIn.jobs.length + 1,
    opcode: parsed.opcode,
    summary: `${parsed.opcode}(${'name' in parsed ? parsed.name : ''})`,
    input: redactOpcode(parsed),
  });
  standIn.jobs.push(job);
  opcodes.set(job.id, parsed);
  json(202, { id: job.id });
}

async function streamEvents(
  standIn: DaemonStandIn,
  job: JobRecord,
  opcode: Opcode | undefined,
  response: ServerResponse,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.flushHeaders();
  const events = opcode && job.endedAtMs === null ? standIn.script(job, opcode) : [end(job)];
  let count = 0;
  for await (const event of events) {
    if (response.destroyed) return;
    if (count >= standIn.cutAfterEvents) {
      standIn.cutAfterEvents = Infinity;
      response.destroy();
      return;
    }
    await new Promise((resolve) => response.write(`${JSON.stringify(event)}\n`, resolve));
    count += 1;
  }
  response.end();
}

function notFound(name: string): ApiError {
  return {
    code: 'INSTANCE_NOT_FOUND',
    message: `there is no instance '${name}'`,
    hint: 'gnt-instance list shows the instances',
    details: { name },
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
