import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HookDocument, hookDocuments } from '#shared/contract/hooks.ts';
import { AGENT_PROOF_HEADER, type SignedInstallEvent } from '#shared/contract/install-event.ts';
import { type InstallPlan, installPlan } from '#shared/contract/plan.ts';
import { visibility } from '#shared/contract/primitives.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { collect } from '#shared/stream/collect.ts';
import { MIB } from '#shared/units/bytes.ts';
import { limitSilence } from '#shared/stream/limit-silence.ts';
import { z } from 'zod';

const BASE_PATH = '/ganeti/latest';
/** Silence that means a dead host. A live one answers at once, or keeps sending bytes. */
const IDLE_TIMEOUT_MS = 120_000;
/** The network comes up while the agent starts, and the host may be busy or restart its service. */
const ANSWER_TIMEOUT_MS = 60_000;
const ANSWER_RETRY_MS = 50;
const MAX_JSON_BYTES = 8 * MIB;
/** 16 MiB of definition, and the archive's own headers. */
const MAX_DEFINITION_BYTES = 24 * MIB;
const MAX_REASON_BYTES = 4096;

const osParameters = z.record(z.string(), z.tuple([z.string(), visibility]));
/** `{"name": ["value", "visibility"]}` as served at os/parameters.json. */
export type OsParameters = z.infer<typeof osParameters>;

export interface HostAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Requests to the host's metadata service on the channel. They are repeated until the host answers.
 * @throws AppError METAD_UNAVAILABLE without an answer for a minute, METAD_REFUSED
 */
export function createHostClient(address: HostAddress) {
  // Not imported: a V8 start-up snapshot cannot hold this module.
  const { Agent, request } = process.getBuiltinModule('node:http');
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });

  function send(
    method: string,
    path: string,
    body?: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          ...address,
          agent,
          method,
          path: `${BASE_PATH}/${path}`,
          headers:
            body === undefined
              ? more
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
        },
        (response) => {
          // From here on `limitSilence` watches the body, without the reader's pauses.
          outgoing.setTimeout(0);
          resolve(response);
        },
      );
      outgoing.setTimeout(IDLE_TIMEOUT_MS, () =>
        outgoing.destroy(new Error(`no answer for ${IDLE_TIMEOUT_MS / 1000} s`)),
      );
      outgoing.on('error', (error) =>
        reject(new AppError('METAD_UNAVAILABLE', `${path}: ${error.message}`, { cause: error })),
      );
      outgoing.end(body);
    });
  }

  async function get(
    path: string,
    limitBytes: number,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Buffer> {
    const response = await send('GET', path, undefined, more);
    if (response.statusCode !== 200) throw await refusal(path, response);
    return await readAll(response, limitBytes);
  }

  return {
    /** @throws AppError VALIDATION for a plan that this agent does not understand */
    async fetchPlan(): Promise<InstallPlan> {
      const bytes = await untilAnswered(() => get('install/plan.json', MAX_JSON_BYTES));
      const parsed = installPlan.safeParse(JSON.parse(bytes.toString()));
      if (parsed.success) return parsed.data;
      throw new AppError('VALIDATION', `install plan: ${z.prettifyError(parsed.error)}`, {
        hint: "Rebuild the appliance, its version differs from the node's: gnt-appliance build",
      });
    },
    /** @throws AppError SECRET_LOST when the host no longer has a secret that the scripts need */
    async fetchOsParameters(): Promise<OsParameters> {
      const bytes = await untilAnswered(() => get('os/parameters.json', MAX_JSON_BYTES));
      return osParameters.parse(JSON.parse(bytes.toString()));
    },
    fetchDefinition: (): Promise<Buffer> =>
      untilAnswered(() => get('os/definition.tar', MAX_DEFINITION_BYTES)),
    /**
     * Returns the documents of hooks in their order.
     * @param signPath proves that the agent asks, since scripts may not read hooks
     */
    async fetchHooks(signPath: (path: string) => string): Promise<HookDocument[]> {
      const path = 'install/hooks.json';
      const proof = { [AGENT_PROOF_HEADER]: signPath(path) };
      const bytes = await untilAnswered(() => get(path, MAX_JSON_BYTES, proof));
      return hookDocuments.parse(JSON.parse(bytes.toString()));
    },
    /** @throws AppError PACKAGE_DOWNLOAD with the host's reason */
    async openPackage(): Promise<Readable> {
      const response = await untilAnswered(() => send('GET', 'os/package'));
      if (response.statusCode === 200)
        return Readable.from(limitSilence(response, IDLE_TIMEOUT_MS), { objectMode: false });
      const reason = await readReason(response);
      throw new AppError('PACKAGE_DOWNLOAD', `personalization package: ${reason}`);
    },
    /** @returns the HTTP status */
    async postEvents(batch: readonly SignedInstallEvent[]): Promise<number> {
      const response = await send('POST', 'install/events', JSON.stringify(batch));
      response.resume();
      return response.statusCode ?? 0;
    },
  };
}

export type HostClient = ReturnType<typeof createHostClient>;

/** Repeats a request without a connection or with status 5xx. */
async function untilAnswered<T>(attempt: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + ANSWER_TIMEOUT_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof AppError && error.code !== 'METAD_UNAVAILABLE') throw error;
      if (performance.now() > deadline) throw error;
      await sleep(ANSWER_RETRY_MS);
    }
  }
}

async function refusal(path: string, response: IncomingMessage): Promise<AppError> {
  const status = response.statusCode ?? 0;
  const reason = await readReason(response);
  if (status === 410) {
    return new AppError('SECRET_LOST', `${path}: ${reason}`, {
      hint: 'Give the secret OS parameters again when you reinstall: gnt-instance reinstall --os-parameters-secret NAME=@FILE INSTANCE',
    });
  }
  const code = status >= 500 ? 'METAD_UNAVAILABLE' : 'METAD_REFUSED';
  return new AppError(code, `${path}: the host answered ${status}: ${reason}`);
}

async function readReason(response: IncomingMessage): Promise<string> {
  const body = await readAll(response, MAX_REASON_BYTES).catch(() => Buffer.alloc(0));
  return body.toString().trim() || `status ${response.statusCode}`;
}

async function readAll(response: IncomingMessage, limitBytes: number): Promise<Buffer> {
  try {
    return await collect(limitSilence(response, IDLE_TIMEOUT_MS), limitBytes);
  } catch (error) {
    throw new AppError('METAD_UNAVAILABLE', `the answer was interrupted: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
