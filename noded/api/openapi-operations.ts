/** A body of the document: JSON by the name of its schema, a list of such, or another media type. */
export type Body = string | readonly [item: string] | { readonly type: string };

export interface ApiOperation {
  readonly summary: string;
  readonly query?: Readonly<
    Record<string, { readonly description: string; readonly type: string }>
  >;
  readonly request?: Body;
  /** Answers that are no failures, by status; null has no body. */
  readonly answers: Readonly<Record<number, Body | null>>;
}

/** Every route of the node's API but those that answer with errors only; paths as the document writes them. */
export const operations: Readonly<Record<string, ApiOperation>> = {
  'GET /v1/node': { summary: 'The node that is asked', answers: { 200: 'NodeInfo' } },
  'GET /v1/nodes': { summary: 'All nodes', answers: { 200: ['ListedNode'] } },
  'DELETE /v1/nodes/{name}': {
    summary: 'Takes a node that is gone for good out of the cluster',
    query: {
      'forget-instances': { description: '1: the instances that it had too', type: 'string' },
    },
    answers: { 204: null },
  },
  'GET /v1/doctor': {
    summary: 'Whether installations can work here, and what to do',
    answers: { 200: 'DoctorReport' },
  },
  'GET /v1/cluster': { summary: 'The cluster', answers: { 200: 'ClusterInfo' } },
  'GET /v1/instances': { summary: 'All instances', answers: { 200: ['InstanceInfo'] } },
  'GET /v1/instances/{name}': {
    summary: 'An instance; private values are replaced, secrets are told by name',
    answers: { 200: 'InstanceInfo' },
  },
  'GET /v1/instances/{name}/log': {
    summary: 'The log of the last installation',
    query: { follow: { description: '1: goes on as the log grows', type: 'string' } },
    answers: { 200: { type: 'text/plain' } },
  },
  'GET /v1/instances/{name}/disks': {
    summary: 'Where the host finds its disks',
    answers: { 200: ['ActiveDisk'] },
  },
  'DELETE /v1/instances/{name}/tokens': {
    summary: 'Ends the session tokens of its ec2 dialect',
    answers: { 204: null },
  },
  'GET /v1/instances/{name}/metadata/{path}': {
    summary: 'What the guest would get at a path, secrets replaced; folders as listings',
    answers: { 200: { type: '*/*' } },
  },
  'GET /v1/instances/{name}/queue': {
    summary: 'Takes the bytes that the guest wrote; the header X-Gnt-Offset tells the next offset',
    query: {
      wait: { description: 'seconds to wait for bytes, at most 60', type: 'integer' },
      offset: { description: 'gives bytes from here on, forgets those before', type: 'integer' },
    },
    answers: { 200: { type: 'application/octet-stream' }, 204: null },
  },
  'POST /v1/instances/{name}/queue': {
    summary: 'Bytes for the guest, at most 64 KiB; whole or not at all',
    request: { type: 'application/octet-stream' },
    answers: { 204: null },
  },
  'GET /v1/instances/{name}/connect/{port}': {
    summary: 'Upgrade: tcp. A raw stream to a TCP port of the guest',
    answers: { 101: null },
  },
  'GET /v1/instances/{name}/console': {
    summary: 'Upgrade: tcp. A raw stream to its serial console',
    answers: { 101: null },
  },
  'GET /v1/exports': { summary: 'Exports on this node', answers: { 200: ['ExportInfo'] } },
  'GET /v1/os': { summary: 'OS definitions that are found', answers: { 200: ['OsInfo'] } },
  'GET /v1/os/{name}': { summary: 'An OS definition', answers: { 200: 'OsInfo' } },
  'POST /v1/jobs': {
    summary: 'Submits an operation as a job',
    query: {
      'dry-run': {
        description: '1: check and prerequisites only, answers 200; job: as a job',
        type: 'string',
      },
    },
    request: 'Opcode',
    answers: { 200: 'DryRunAccepted', 202: 'JobSubmitted' },
  },
  'GET /v1/jobs': { summary: 'All jobs, without their logs', answers: { 200: ['JobRecord'] } },
  'GET /v1/jobs/{id}': { summary: 'A job', answers: { 200: 'JobRecord' } },
  'DELETE /v1/jobs/{id}': {
    summary: 'Asks for the end of a job',
    answers: { 202: { type: 'application/json' } },
  },
  'GET /v1/jobs/{id}/events': {
    summary:
      'Events of a job, one JobEvent a line: from its start, then as they happen, to its end',
    answers: { 200: { type: 'application/x-ndjson' } },
  },
  'GET /v1/openapi.json': {
    summary: 'This document',
    answers: { 200: { type: 'application/json' } },
  },
  'GET /metrics': { summary: 'Prometheus text', answers: { 200: { type: 'text/plain' } } },
};
