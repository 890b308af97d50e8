import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';

/** Its host scripts log each run. */
export const OS = 'logged';
export const NETWORK = 'lan';
const ANSWER_MS = 120_000;
const UNANSWERED = { kind: 'unanswered' } as const;

/** A submitted job, and the answer. */
export interface Asked {
  readonly opcode: OpcodeInput & { readonly name: string };
  readonly answer:
    | { readonly kind: 'accepted'; readonly id: number }
    | { readonly kind: 'refused'; readonly code: string }
    /** The node closed the connection: it may have accepted the job. */
    | { readonly kind: 'unanswered' }
    /** No answer within ANSWER_MS. */
    | { readonly kind: 'ignored' };
  readonly tookMs: number;
}

const refusal = z.object({
  code: z.string(),
  details: z.object({ mayBeDone: z.boolean().optional() }).nullish(),
});
const answered = z.union([
  z.object({ id: z.number().int() }),
  refusal,
  z.object({ error: refusal }),
]);

export async function askFor(lab: Lab, opcode: Asked['opcode']): Promise<Asked> {
  const startMs = performance.now();
  const asking = askSocket(lab.paths.nodedSocket, '/v1/jobs', { method: 'POST', body: opcode });
  const answer = await Promise.race([
    asking.then(({ body }) => readAnswer(body)).catch((): Asked['answer'] => UNANSWERED),
    sleep<Asked['answer']>(ANSWER_MS, { kind: 'ignored' }, { ref: false }),
  ]);
  return { opcode, answer, tookMs: Math.round(performance.now() - startMs) };
}

function readAnswer(body: string): Asked['answer'] {
  const said = answered.safeParse(parse(body)).data;
  if (said === undefined) return UNANSWERED;
  if ('id' in said) return { kind: 'accepted', id: said.id };
  const { code, details } = 'code' in said ? said : said.error;
  // This node reports that its connection to another node broke.
  return details?.mayBeDone === true ? UNANSWERED : { kind: 'refused', code };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The daemon died while sending its answer.
    return undefined;
  }
}

export interface Population {
  /** Names of stopped and of running instances. */
  readonly stopped: readonly string[];
  readonly running: readonly string[];
  readonly nodes: readonly string[];
}

export function createOf(name: string, node: string, secret: string): Asked['opcode'] {
  return {
    ...{ opcode: 'INSTANCE_CREATE', name, node, osType: OS, start: false },
    ...{ disks: [{ sizeBytes: 4 * MIB }], nics: [{ networkName: NETWORK, ip: 'pool' }] },
    ...{ beparams: { memoryMiB: 64, vcpus: 1 }, osParametersSecret: { key: secret } },
    communication: true,
  };
}

/** Draws jobs of all kinds for random instances. Some kinds are more frequent. */
export function drawJobs(
  random: SeededRandom,
  count: number,
  { stopped, running, nodes }: Population,
  { round, secret }: { readonly round: number; readonly secret: string },
): readonly Asked['opcode'][] {
  const some = (): string => random.pick(stopped);
  const guest = (): string => random.pick(running.length > 0 ? running : stopped);
  const node = (): string => random.pick(nodes);
  const kinds: readonly ((index: number) => Asked['opcode'])[] = [
    ...Array.from({ length: 8 }, () => (index: number) =>
      createOf(`r${round}n${index}.example.com`, node(), secret),
    ),
    (index) => ({ opcode: 'INSTANCE_SET_PARAMS', name: some(), tags: [`r${round}n${index}`] }),
    (index) => ({ opcode: 'INSTANCE_SET_PARAMS', name: guest(), tags: [`r${round}n${index}`] }),
    () => ({ opcode: 'INSTANCE_MOVE', name: some(), node: node() }),
    () => ({ opcode: 'INSTANCE_MOVE', name: some(), node: node() }),
    () => ({ opcode: 'INSTANCE_REINSTALL', name: some(), osParametersSecret: { key: secret } }),
    (index) => ({ opcode: 'INSTANCE_RENAME', name: some(), newName: `r${round}m${index}.example.com` }),
    () => ({ opcode: 'INSTANCE_REMOVE', name: some() }),
    () => ({ opcode: 'INSTANCE_MIGRATE', name: guest(), node: node() }),
    () => ({ opcode: 'INSTANCE_STARTUP', name: guest(), osParametersSecret: { key: secret } }),
    () => ({ opcode: 'INSTANCE_SHUTDOWN', name: guest(), timeoutS: 0 }),
  ]; // prettier-ignore
  return Array.from({ length: count }, (_, index) => random.pick(kinds)(index));
}
