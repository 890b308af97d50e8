import { z } from 'zod';
import { bootEvent, bootResult } from './boot-report.ts';
import { hostKeys, loginUser } from './host-keys.ts';
import { installReport } from './install-event.ts';
import { lifecycleAdvance, lifecycleOutput } from './lifecycle.ts';
import { uuid } from './primitives.ts';

/**
 * What one instance may have open at a time on the content socket; both sides count. An appliance
 * reads one image and one package; what it gave up may not be closed yet. apt sends ten requests
 * ahead on each connection to a mirror.
 */
export const MAX_BULK_STREAMS = 4;
export const MAX_MIRROR_STREAMS = 64;
/**
 * A datagram of an exposed service, in either direction: what DNS and NTP are made for is below
 * 1,500 bytes, and 4,096 is the most that a resolver ever asked for.
 */
export const MAX_DATAGRAM_BYTES = 4096;
/**
 * Source ports that one instance may use at a time for datagrams to exposed services; a resolver
 * takes a new one for each question.
 */
export const MAX_DATAGRAM_FLOWS = 64;

/**
 * In metad's folder beside the content socket: metad's, for datagrams. On it noded hands over open
 * files (SCM_RIGHTS), each with the name as its text that metad asked for it by.
 */
export const METAD_FILE_SOCKET = 'files.sock';
/**
 * metad → noded, of a GET: the name (a UUID) of an open file that it would take in place of a body.
 */
export const TAKES_FILE_HEADER = 'x-gnt-takes-file';
/**
 * noded → metad: the file was handed over, and the answer has no body; `FIRST LENGTH` in bytes of
 * the file is what its body would be.
 */
export const HANDED_FILE_HEADER = 'x-gnt-file';
/**
 * Of the bytes of a queue, or of a run list entry's output, to guest and host: the offset that
 * follows them.
 */
export const OFFSET_HEADER = 'X-Gnt-Offset';
/**
 * metad → noded, in the answer to a view: names of the secret OS parameters whose values metad
 * lacks, with commas between them.
 */
export const LOST_SECRETS_HEADER = 'x-gnt-lost-secrets';
/** metad → noded, of a connection to an exposed service: the guest's port. */
export const SOURCE_PORT_HEADER = 'x-gnt-source-port';

/**
 * noded → metad, HTTP on `run/gnt/metad/control.sock`:   PUT    /v1/instances/{uuid}[?guest=up]
 * body InstanceView → 204; 400 {code,message} names the field, the old view stays.
 * up: its guest was started before, and may have been served by another metad   DELETE
 * /v1/instances/{uuid}            → 204, also when unknown; sockets of its device are closed before
 * the answer   GET    /v1/status                      → MetadStatus   GET
 * /v1/events?after={sequence}     → NDJSON of MetadEvent, open-ended; starts with those kept after
 * `sequence`   GET    /v1/instances/{uuid}/tree/{path}      → what the guest would get there,
 * secrets redacted; folders as listings   GET    /v1/instances/{uuid}/queue?offset=N&wait=S  →
 * bytes that the guest wrote (header x-gnt-offset), 204 when none   POST
 * /v1/instances/{uuid}/queue      body: bytes for the guest's next `read` → 204, 413, 429   GET
 * /v1/instances/{uuid}/connect/{port}   Upgrade: tcp → 101 and a raw stream to that TCP port of the
 * guest   DELETE /v1/instances/{uuid}/tokens     → 204: every session token of its ec2 dialect has
 * ended; 404 without a view   GET    /v1/instances/{uuid}/secrets    → {name: value}: secret OS
 * parameters that it still has, for the node that gets the guest   POST
 * /v1/instances/{uuid}/leave      → GuestHandover: its guest stands still, and nothing of it
 * changes here any more. Its                                          connections are closed, who
 * reads or writes its queue gets 204 and 429   DELETE /v1/instances/{uuid}/leave      → 204: the
 * guest goes on here   PUT    /v1/instances/{uuid}/arrive     body GuestHandover → 204: the guest
 * that is expected goes on with that; 409 of another installation   GET    /metrics
 * → Prometheus text
 *
 * metad → noded, HTTP on `run/gnt/metad/content.sock`:   GET /v1/instances/{uuid}/image (Range) |
 * /v1/instances/{uuid}/package   for instances that are being installed   GET
 * /v1/instances/{uuid}/mirror/{name}/{path}   (Range, conditions) likewise, from a mirror that the
 * administrator allows;     400 for a path that could lead out of it, 404 when it is not there, 502
 * with a reason for everything else   GET /v1/instances/{uuid}/boot/{path}   (Range, conditions) of
 * an instance that boots from its channel: a file of the archive or     repository of its boot
 * environment; 404 and 502 likewise   GET /v1/instances/{uuid}/services/{name}   Upgrade: tcp,
 * x-gnt-source-port: the guest's port → 101 and a raw stream to the exposed     service, which
 * noded has sent its PROXY header to; 404 when there is no such service, 502 when it does not
 * answer   GET /v1/instances/{uuid}/datagrams/{name}  Upgrade: tcp → 101 and a stream of datagrams
 * (shared/stream/datagram-frames.ts) to and from     the exposed UDP service, for one of the
 * guest's source ports; noded ends it when the guest is silent; 404 and 502 as above   503 for any
 * of these: the instance has too many open   An image, or a file of an archive, is handed over open
 * where metad asks for that (TAKES_FILE_HEADER)
 */
export const metadStatus = z.object({
  pid: z.number().int(),
  protocol: z.literal(1),
  startedAtMs: z.number(),
  /** The number of the last event so far. An earlier release does not say. */
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

/**
 * Everything that comes from a guest carries its instance; noded validates it as if the guest had
 * sent it itself.
 */
export const metadEvent = z.object({
  sequence: z.number().int().positive(),
  instance: uuid,
  event: z.discriminatedUnion('type', [
    /** As it was posted: whether the agent said it, or a script, is for noded to find out. */
    z.object({ type: z.literal('install'), installId: uuid, event: installReport }),
    /** The guest said that it is up: cloud-init's phone_home or its final stage. */
    z.object({ type: z.literal('ready'), source: z.string().max(64), text: z.string().max(4096) }),
    /** How the guest's cloud-init gets on; at its end, what its status file says. */
    z.object({ type: z.literal('boot'), event: bootEvent }),
    z.object({ type: z.literal('boot-result'), result: bootResult }),
    lifecycleAdvance,
    lifecycleOutput,
    /** The guest said which keys its sshd has, and whom the operator's keys let in. */
    z.object({ type: z.literal('host-keys'), keys: hostKeys, user: loginUser.nullable() }),
    /** The guest wrote into its channel. */
    z.object({ type: z.literal('written'), bytes: z.number().int().nonnegative() }),
    z.object({ type: z.literal('gap'), lost: z.number().int() }),
  ]),
});
export type MetadEvent = z.infer<typeof metadEvent>;
