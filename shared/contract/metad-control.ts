import { z } from 'zod';
import { bootEvent, bootResult } from './boot-report.ts';
import { hostKeys, loginUser } from './host-keys.ts';
import { installReport } from './install-event.ts';
import { lifecycleAdvance, lifecycleOutput } from './lifecycle.ts';
import { uuid } from './primitives.ts';

/**
 * Open requests of one instance on the content socket; both sides count. An appliance reads one
 * image and one package, and abandoned requests may still be open. apt pipelines ten requests on
 * each connection to a mirror.
 */
export const MAX_BULK_STREAMS = 4;
export const MAX_MIRROR_STREAMS = 64;
/** Open requests of one instance for identity tokens; both sides count. */
export const MAX_TOKEN_REQUESTS = 4;
/** The same for credentials of clouds. Many programs of a guest may start at once. */
export const MAX_CREDENTIAL_REQUESTS = 16;
/**
 * Open requests of one instance to relays; both sides count. git and npm open up to 15 connections.
 */
export const MAX_RELAY_STREAMS = 16;
/**
 * A datagram of an exposed service in either direction. DNS and NTP need less than 1,500 bytes;
 * 4,096 is the largest size that resolvers request.
 */
export const MAX_DATAGRAM_BYTES = 4096;
/**
 * Source ports of one instance for datagrams to exposed services. A resolver uses a new port for
 * each question.
 */
export const MAX_DATAGRAM_FLOWS = 64;

/**
 * metad's datagram socket beside the content socket. noded sends open files to it (SCM_RIGHTS),
 * with the name from metad's request as text.
 */
export const METAD_FILE_SOCKET = 'files.sock';
/**
 * metad → noded, in a GET: the name (a UUID) of an open file that metad accepts instead of a
 * body.
 */
export const TAKES_FILE_HEADER = 'x-gnt-takes-file';
/**
 * noded → metad: the file was sent, and the answer has no body. `FIRST LENGTH` is the range in
 * the file, in bytes.
 */
export const HANDED_FILE_HEADER = 'x-gnt-file';
/** To guest and host, with bytes of a queue or of script output: the offset after them. */
export const OFFSET_HEADER = 'X-Gnt-Offset';
/**
 * metad → noded, in the answer to a view: names of the secret OS parameters that metad lacks,
 * separated by commas.
 */
export const LOST_SECRETS_HEADER = 'x-gnt-lost-secrets';
/** metad → noded, for a connection to an exposed service: the guest's port. */
export const SOURCE_PORT_HEADER = 'x-gnt-source-port';

/**
 * noded → metad, HTTP on `run/gnt/metad/control.sock`:
 *
 * - PUT /v1/instances/{uuid}[?guest=up], body InstanceView → 204; 400 {code,message} names the
 *   field, and the old view stays. up: the guest is already running, and another metad may have
 *   served it
 * - DELETE /v1/instances/{uuid} → 204, also when unknown; sockets of its device are closed before
 *   the answer
 * - GET /v1/status → MetadStatus
 * - GET /v1/events?after={sequence} → NDJSON of MetadEvent, open-ended; starts with the stored
 *   events after `sequence`
 * - GET /v1/instances/{uuid}/tree/{path} → the guest's answer at this path, with secrets
 *   redacted; folders as listings
 * - GET /v1/instances/{uuid}/queue?offset=N&wait=S → bytes from the guest (header x-gnt-offset),
 *   204 when none
 * - POST /v1/instances/{uuid}/queue, body: bytes for the guest's next `read` → 204, 413, 429
 * - GET /v1/instances/{uuid}/connect/{port}, Upgrade: tcp → 101 and a raw stream to that TCP port
 *   of the guest
 * - DELETE /v1/instances/{uuid}/tokens → 204: revokes all session tokens of the dialect ec2; 404
 *   without a view
 * - GET /v1/instances/{uuid}/secrets → {name: value}: its secret OS parameters, for the target
 *   node of a migration
 * - POST /v1/instances/{uuid}/leave → GuestHandover: the guest is paused, and its state here no
 *   longer changes. Its connections are closed; readers and writers of its queue get 204 and 429
 * - DELETE /v1/instances/{uuid}/leave → 204: the guest continues here
 * - PUT /v1/instances/{uuid}/arrive, body GuestHandover → 204: the expected guest continues with
 *   this state; 409 for another installation
 * - GET /metrics → Prometheus text
 *
 * metad → noded, HTTP on `run/gnt/metad/content.sock`:
 *
 * - GET /v1/instances/{uuid}/image (Range) and /v1/instances/{uuid}/package, during an installation
 * - GET /v1/instances/{uuid}/mirror/{name}/{path} (Range, conditions), during an installation, from
 *   an allowed mirror; 400 for a path that could leave the mirror, 404 when absent, 502 with a
 *   reason for other failures
 * - GET /v1/instances/{uuid}/boot/{path} (Range, conditions), for an instance that boots from its
 *   channel: a file of the archive or repository of its boot environment; 404 and 502 as above
 * - GET /v1/instances/{uuid}/identity/token?audience&ttl&alg&format → an identity token as text
 *   (identity.ts); 400 for a bad query, 403 without permission, 404 without a running guest here,
 *   503 when the keys or the store are unavailable
 * - GET /v1/instances/{uuid}/identity/credentials/{aws|google} → temporary credentials in the
 *   cloud's format (JSON as text), for AWS also a failure; otherwise 403, 404 and 503 as above
 * - any method of relay.ts at /v1/instances/{uuid}/relay/{name}/{path} with the guest's headers,
 *   query and body → the answer of the relay's server, or a refusal: 403 and 405 for a request that
 *   the relay does not allow, 404 without a relay for this instance, 410 when the secret is lost,
 *   413, 429, 502, 503 and 504
 * - GET /v1/instances/{uuid}/services/{name}, Upgrade: tcp, x-gnt-source-port: the guest's port →
 *   101 and a raw stream to the exposed service, after noded's PROXY header; 404 without such a
 *   service, 502 when it does not answer
 * - GET /v1/instances/{uuid}/datagrams/{name}, Upgrade: tcp → 101 and a stream of datagrams
 *   (shared/stream/datagram-frames.ts) to and from the exposed UDP service, for one source port of
 *   the guest; noded ends it when the guest is silent; 404 and 502 as above
 *
 * All of these answer 503 when the instance has too many open requests. For an image or a file of
 * an archive, noded sends the open file if metad requests that (TAKES_FILE_HEADER).
 */
export const metadStatus = z.object({
  pid: z.number().int(),
  protocol: z.literal(1),
  startedAtMs: z.number(),
  /** Sequence of the last event. Absent in earlier releases. */
  lastSequence: z.number().int().optional(),
  instances: z.array(
    z.object({
      uuid,
      revision: z.number().int(),
      device: z.string(),
      mode: z.enum(['run', 'install']),
    }),
  ),
});
export type MetadStatus = z.infer<typeof metadStatus>;

/** An event with its instance. noded validates guest data in it as untrusted. */
export const metadEvent = z.object({
  sequence: z.number().int().positive(),
  instance: uuid,
  event: z.discriminatedUnion('type', [
    /** As posted. noded checks whether the agent or a script sent it. */
    z.object({ type: z.literal('install'), installId: uuid, event: installReport }),
    /** The guest reported that it is up: cloud-init's phone_home or its final stage. */
    z.object({ type: z.literal('ready'), source: z.string().max(64), text: z.string().max(4096) }),
    /** Progress of cloud-init; at its end, the content of its status file. */
    z.object({ type: z.literal('boot'), event: bootEvent }),
    z.object({ type: z.literal('boot-result'), result: bootResult }),
    lifecycleAdvance,
    lifecycleOutput,
    /** The guest reported the keys of its sshd and its login user. */
    z.object({ type: z.literal('host-keys'), keys: hostKeys, user: loginUser.nullable() }),
    /** The guest wrote to its queue. */
    z.object({ type: z.literal('written'), bytes: z.number().int().nonnegative() }),
    z.object({ type: z.literal('gap'), lost: z.number().int() }),
  ]),
});
export type MetadEvent = z.infer<typeof metadEvent>;
