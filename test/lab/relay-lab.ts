import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/clock/clock.ts';
import type { RelaySettings } from '#shared/contract/relay.ts';
import type { Logger } from '#shared/log/log.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { startContentServer } from '../../noded/net/metad-link/content-server.ts';
import { RelaySecrets } from '../../noded/net/relay/relay-secrets.ts';
import { createRelays, type Relays } from '../../noded/net/relay/relays.ts';
import {
  type ClusterRepository,
  createClusterRepository,
} from '../../noded/records/cluster-repository.ts';
import { ChannelLab, type Guest, METAD_UID } from '../metad/support/channel-lab.ts';
import { exampleView } from '../metad/support/view-fixture.ts';
import { instanceRecord } from '../noded/support/records.ts';
import { listenOnLoopback } from './listen-on-loopback.ts';
import { makeOwnAuthority } from './own-authority.ts';

export const SECRET = 'sk-test/+Zq81-quite~secret=%41';

/** A server with TLS, the relays of a node, the real metad, and two guests. */
export interface RelayLab extends AsyncDisposable {
  readonly channel: ChannelLab;
  /** May use all relays of the lab by its tags. */
  readonly guest: Guest;
  /** May use relays for all instances only. */
  readonly neighbour: Guest;
  readonly uuid: string;
  readonly relays: Relays;
  readonly secrets: RelaySecrets;
  readonly clusters: ClusterRepository;
  readonly origin: string;
  readonly directory: string;
  readonly certFile: string;
  /** Records of the node's log. */
  readonly lines: { readonly event: string; readonly fields: object }[];
  /** Replaces the relays, and gives each its secret. */
  configure(relays: Record<string, Partial<RelaySettings>>): Promise<void>;
  serve(overrides?: Partial<ReturnType<typeof exampleView>>): Promise<void>;
}

export async function openRelayLab(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  tags: readonly string[],
): Promise<RelayLab> {
  await using undo = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'gnt-relay-'));
  undo.defer(() => rm(directory, { recursive: true }));
  const { key, cert, certFile } = await makeOwnAuthority(directory);
  const server: Server = createServer({ key, cert }, answer);
  const origin = `https://127.0.0.1:${await listenOnLoopback(server)}`;
  undo.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  const store = createSqliteStore({ path: join(directory, 'store.sqlite'), clock: systemClock });
  undo.defer(() => store.close());
  const clusters = createClusterRepository(store, systemClock);
  await clusters.ensure();
  const view = exampleView();
  const other = exampleView({
    name: 'web2.example.com',
    uuid: '00000000-1f3d-49e9-b2b7-000000000002',
    nics: [],
    channel: { device: 'gnt.com.1', mac: '52:54:00:e1:a3:46', ip: '169.254.0.2', hopLimit: 1 },
  });
  const records = new Map([
    [view.uuid, instanceRecord({ name: view.name, tags: [...tags] }, { uuid: view.uuid })],
    [other.uuid, instanceRecord({ name: other.name }, { uuid: other.uuid })],
  ]);
  const lines: { readonly event: string; readonly fields: object }[] = [];
  const note = (event: string, fields: object = {}): void => void lines.push({ event, fields });
  const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  const secrets = new RelaySecrets();
  const relays = createRelays({
    ...{ clusters, secrets, clock: systemClock, logger },
    instances: { findByUuid: async (uuid) => records.get(uuid) },
    hasChannel: (uuid) => records.has(uuid),
  });
  const channel = undo.use(await ChannelLab.create());
  const content = await startContentServer({
    ...{ socketPath: channel.contentSocket, gid: METAD_UID, logger, clock: systemClock },
    content: {
      openImage: async () => undefined,
      openPackage: async () => undefined,
      openMirror: async () => undefined,
      findService: async () => undefined,
      findBootTree: async () => undefined,
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      openRelay: relays.open,
    },
  });
  undo.defer(() => content.close());
  const guest = await channel.addGuest(view.channel);
  const neighbour = await channel.addGuest(other.channel);
  const all = undo.move();
  let revision = 1;
  return {
    ...{ channel, guest, neighbour, uuid: view.uuid, relays, secrets, clusters, origin },
    ...{ directory, certFile, lines },
    configure: async (given) => {
      const settings = Object.entries(given).map(([name, relay]) => {
        const whole: RelaySettings = { url: origin, auth: { kind: 'bearer' }, access: 'tagged' };
        return [name, { ...whole, ...relay }] as const;
      });
      await clusters.update((cluster) => ({
        ...cluster,
        imageCa: cert,
        relays: Object.fromEntries(settings),
      }));
      for (const [name] of settings) await relays.give(name, SECRET);
    },
    serve: async (overrides = {}) => {
      for (const one of [view, other]) {
        const { status } = await channel.put({ ...one, ...overrides, revision: revision++ });
        if (status !== 204) throw new Error(`metad refused a view: ${status}`);
      }
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
