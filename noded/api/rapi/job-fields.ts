import type { JobError, JobRecord } from '#shared/contract/job.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { fieldsOf, toTimestamp, type Fields } from './fields.ts';
import { describeInstanceData } from './instance-fields.ts';

/** Ganeti's kinds of refusals; the default is "wrong input". */
const errorKinds: Readonly<Record<string, string>> = {
  INSTANCE_NOT_FOUND: 'unknown_entity',
  NODE_NOT_FOUND: 'unknown_entity',
  NODE_UNREACHABLE: 'environment_error',
  NODE_OFFLINE: 'wrong_state',
  NODE_DRAINED: 'wrong_state',
  NO_ROOM: 'insufficient_resources',
  STORE_UNAVAILABLE: 'environment_error',
  OS_NOT_FOUND: 'unknown_entity',
  BOOTENV_NOT_FOUND: 'unknown_entity',
  IMAGE_NOT_FOUND: 'unknown_entity',
  INSTANCE_EXISTS: 'already_exists',
  INSTANCE_STATE: 'wrong_state',
  INSTANCE_BUSY: 'wrong_state',
  NO_FREE_ADDRESS: 'insufficient_resources',
  DISK_SPACE: 'insufficient_resources',
  HOST_PREREQUISITE: 'environment_error',
};

/** Ganeti's names of opcode parameters. Other names are only converted to snake case. */
const parameterNames: Readonly<Record<string, string>> = {
  opcode: 'OP_ID',
  isDryRun: 'dry_run',
  node: 'pnode',
  communication: 'instance_communication',
  bootEnv: 'bootenv',
  osParameters: 'osparams',
  osParametersPrivate: 'osparams_private',
  osParametersSecret: 'osparams_secret',
  kind: 'reboot_type',
  timeoutS: 'timeout',
  shutdownTimeoutS: 'shutdown_timeout',
};

/** Ganeti's names of the parameter `name`, by the first word of an opcode. */
const nameNames: Readonly<Record<string, string>> = {
  INSTANCE: 'instance_name',
  BACKUP: 'instance_name',
  NETWORK: 'network_name',
  NODE: 'node_name',
};

/** Returns the stored opcode, in which private and secret values are already replaced. */
function describeOpcode({ opcode, input }: JobRecord): Record<string, unknown> {
  const [subject = ''] = opcode.split('_');
  return Object.fromEntries(
    Object.entries(input).map(([key, value]) => {
      const snakeCase = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      const named = key === 'name' ? ownValue(nameNames, subject) : ownValue(parameterNames, key);
      return [named ?? snakeCase, key === 'opcode' ? `OP_${String(value)}` : value];
    }),
  );
}

function describeResult(job: JobRecord): unknown {
  if (job.status === 'canceled') return 'Job canceled by request';
  if (job.error !== null) return describeError(job.error);
  if (job.opcode !== 'INSTANCE_QUERY_DATA' || job.result === null) return job.result;
  return describeInstanceData(instanceInfo.parse(job.result));
}

/**
 * Encodes an error as Ganeti encodes exceptions, by class and arguments. Its clients raise it
 * again.
 */
function describeError({ code, message, hint, phase }: JobError): unknown {
  const text = hint === null ? message : `${message} (${hint})`;
  if (phase === 'execution') return ['OpExecError', [text]];
  return ['OpPrereqError', [text, ownValue(errorKinds, code) ?? 'wrong_input']];
}

type LogEntry = readonly [number, readonly [number, number] | null, 'message', string];

/** Returns the entries of a job's log after a serial number. */
export function logEntries(job: JobRecord, afterSerial = -1): readonly LogEntry[] {
  return job.log
    .filter(({ sequence }) => sequence > afterSerial)
    .map(({ sequence, atMs, message }) => [sequence, toTimestamp(atMs), 'message', message]);
}

const { text, number, other } = fieldsOf<JobRecord>();

/** Each of Ganeti's lists has one element, since a job here has one opcode. */
export const jobFields: Fields<JobRecord> = {
  id: number('ID', 'Job ID', (job) => job.id),
  ops: other('OpCodes', 'List of all opcodes', (job) => [describeOpcode(job)]),
  status: text('Status', 'Job status', (job) => job.status),
  summary: other('Summary', 'List of per-opcode summaries', (job) => [job.summary]),
  opstatus: other('OpCode_status', 'List of opcodes status', (job) => [job.status]),
  received_ts: other('Received', 'Timestamp of when job was received', (job) =>
    toTimestamp(job.receivedAtMs),
  ),
  start_ts: other('Start', 'Timestamp of job start', (job) => toTimestamp(job.startedAtMs)),
  end_ts: other('End', 'Timestamp of job end', (job) => toTimestamp(job.endedAtMs)),
  oplog: other('OpCode_log', 'List of opcode output logs', (job) => [logEntries(job)]),
  opresult: other('OpCode_result', 'List of opcodes results', (job) => [describeResult(job)]),
};

/** The fields of a job in a list. */
export const bulkJobFields = [
  ...['id', 'ops', 'status', 'summary', 'opstatus', 'received_ts', 'start_ts', 'end_ts'],
] as const;
