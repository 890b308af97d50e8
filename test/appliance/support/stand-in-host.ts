import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type InstallEvent,
  installEvent,
  installEventBatch,
  type InstallReport,
} from '#shared/contract/install-event.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { inNetworkNamespace, openDeviceSocket, openTap } from '#shared/sys/network-sockets.ts';

const run = promisify(execFile);
const GUEST_IP = '169.254.77.7';
const HOST_IP = '169.254.169.254';
const TAP = 'gnt.com.0';

/** Content that the stand-in serves for one installation. */
export interface StandInContent {
  readonly plan?: InstallPlan;
  readonly osParameters?: Record<string, [string, string]>;
  readonly definitionTar?: Buffer;
  readonly osPackage?: Buffer;
  /** Answers os/package, for answers other than the whole package. */
  readonly servePackage?: (response: ServerResponse) => void;
  /** Other documents by path. */
  readonly documents?: Readonly<Record<string, string>>;
  /** Returns the status for a POST of events by its number; 204 by default. */
  readonly eventStatus?: (post: number) => number | undefined;
}

/**
 * The host's side of the channel as the appliance contract has it, in a network namespace of its
 * own: a TAP, DHCP by busybox, and the plan, content and event requests. It uses no code of the
 * product's service, and shows the minimum of a self-made host.
 */
export class StandInHost {
  readonly tapFd: number;
  /** In order of arrival, signed or not. */
  readonly reports: InstallReport[] = [];
  /** Content of the signed ones, unverified. */
  readonly events: InstallEvent[] = [];
  readonly requests: string[] = [];
  /** Bodies of all other POSTs. */
  readonly written: string[] = [];
  readonly #namespace: string;
  readonly #directory: string;
  readonly #server: Server;
  readonly #dhcp: ChildProcess;

  private constructor(parts: {
    tapFd: number;
    namespace: string;
    directory: string;
    server: Server;
    dhcp: ChildProcess;
  }) {
    this.tapFd = parts.tapFd;
    this.#namespace = parts.namespace;
    this.#directory = parts.directory;
    this.#server = parts.server;
    this.#dhcp = parts.dhcp;
  }

  static async start(content: StandInContent): Promise<StandInHost> {
    const namespace = `gnt-test-appl-${process.pid}`;
    await run('ip', ['netns', 'add', namespace]);
    const path = `/run/netns/${namespace}`;
    const tapFd = inNetworkNamespace(path, () => openTap(TAP));
    const inside = (...args: string[]): Promise<unknown> =>
      run('ip', ['netns', 'exec', namespace, ...args]);
    await inside('ip', 'link', 'set', 'lo', 'up');
    await inside('ip', 'addr', 'add', `${HOST_IP}/32`, 'dev', TAP);
    await inside('ip', 'link', 'set', TAP, 'up');
    await inside('ip', 'route', 'add', `${GUEST_IP}/32`, 'dev', TAP);
    const directory = await mkdtemp(join(tmpdir(), 'gnt-appl-'));
    const dhcp = await startDhcp(namespace, directory);
    const server = createServer();
    const fd = inNetworkNamespace(path, () =>
      openDeviceSocket({ device: TAP, type: 'tcp', address: HOST_IP, port: 80 }),
    );
    const host = new StandInHost({ tapFd, namespace, directory, server, dhcp });
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        host.#answer(content, `${request.method} ${request.url}`, Buffer.concat(chunks), response);
      });
    });
    server.listen({ fd });
    return host;
  }

  #posts = 0;

  #answer(content: StandInContent, asked: string, body: Buffer, response: ServerResponse): void {
    this.requests.push(asked);
    const json = (value: unknown): void => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(value));
    };
    const bytes = (value: Buffer | undefined): void => {
      response.statusCode = value ? 200 : 404;
      response.end(value);
    };
    switch (asked) {
      case 'GET /ganeti/latest/install/plan.json':
        return content.plan ? json(content.plan) : bytes(undefined);
      case 'GET /ganeti/latest/os/parameters.json':
        return json(content.osParameters ?? {});
      case 'GET /ganeti/latest/os/definition.tar':
        return bytes(content.definitionTar);
      case 'GET /ganeti/latest/os/package':
        return content.servePackage ? content.servePackage(response) : bytes(content.osPackage);
      case 'POST /ganeti/latest/install/events': {
        const status = content.eventStatus?.(this.#posts++) ?? 204;
        if (status < 300) this.#take(installEventBatch.parse(JSON.parse(body.toString())));
        response.statusCode = status;
        response.end();
        return;
      }
      default: {
        const [method, path = ''] = asked.split(' ');
        const document = content.documents?.[path];
        if (method === 'POST') this.written.push(body.toString());
        response.statusCode = method === 'POST' ? 204 : document === undefined ? 404 : 200;
        response.end(document);
      }
    }
  }

  #take(reports: readonly InstallReport[]): void {
    this.reports.push(...reports);
    for (const report of reports) {
      const event = 'body' in report && installEvent.safeParse(JSON.parse(report.body)).data;
      if (event) this.events.push(event);
    }
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    const ended = once(this.#dhcp, 'exit');
    this.#dhcp.kill('SIGKILL');
    await ended;
    closeSync(this.tapFd);
    await run('ip', ['netns', 'delete', this.#namespace]);
    await rm(this.#directory, { recursive: true });
  }
}

async function startDhcp(namespace: string, directory: string): Promise<ChildProcess> {
  const file = join(directory, 'udhcpd.conf');
  await writeFile(
    file,
    [
      `start ${GUEST_IP}`,
      `end ${GUEST_IP}`,
      `interface ${TAP}`,
      `lease_file ${join(directory, 'leases')}`,
      `pidfile ${join(directory, 'pid')}`,
      'option subnet 255.255.255.255',
      `option staticroutes ${HOST_IP}/32 0.0.0.0`,
      '',
    ].join('\n'),
  );
  await writeFile(join(directory, 'leases'), '');
  const log = openSync(join(directory, 'log'), 'w');
  const args = ['netns', 'exec', namespace, 'busybox', 'udhcpd', '-f', '-I', HOST_IP, file];
  const child = spawn('ip', args, { stdio: ['ignore', log, log] });
  closeSync(log);
  return child;
}
