import { setTimeout as sleep } from 'node:timers/promises';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { abortReason } from '#shared/abort/abortable.ts';
import {
  type ArrivalBegun,
  type ArrivalEnded,
  arrivalBegun,
  arrivalEnded,
  type MovedFile,
  remainsEnded,
  type RemainsEnded,
} from '#shared/contract/move.ts';
import type { GuestHandover } from '#shared/contract/guest-handover.ts';
import {
  machineArrived,
  type MachineExpected,
  type MachineNature,
} from '#shared/contract/migration.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { askPeer, type PeerRequest, type Peers, upgradePeer } from '../peers/ask-peer.ts';

/** How long a link that is cut, or a store that is away, may keep a move from going on. */
const PATIENCE_MS = 5 * 60_000;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5000;

/**
 * The node that an instance moves to. What was begun goes on over links that are cut meanwhile:
 * each question may be asked again, and is, until patience ends.
 */
export interface MigrationTargetClient {
  /**
   * Whether it would take the instance; nothing is kept. @throws AppError what it refuses it with
   */
  check(uuid: string, signal: AbortSignal): Promise<void>;
  begin(uuid: string, files: readonly MovedFile[], signal: AbortSignal): Promise<ArrivalBegun>;
  write(at: WrittenTo, message: Buffer, signal: AbortSignal): Promise<void>;
  verify(
    at: Session,
    digests: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /** The same of its machine as it runs. @throws AppError what it refuses it with */
  checkMachine(uuid: string, nature: MachineNature, signal: AbortSignal): Promise<void>;
  expect(at: Session, expected: MachineExpected, signal: AbortSignal): Promise<void>;
  openStream(at: WrittenTo, signal: AbortSignal): Promise<Duplex>;
  /**
   * Of disks that have been copied, while the guest goes on: what is left for the switch is little.
   */
  sync(at: Session, signal: AbortSignal): Promise<void>;
  /** What it and its host have with metad; it stands still. */
  handOver(at: Session, handover: GuestHandover, signal: AbortSignal): Promise<void>;
  /** @returns the serial number with which the record may be given away */
  awaitGuest(at: Session, signal: AbortSignal): Promise<number>;
  end(uuid: string, signal: AbortSignal): Promise<ArrivalEnded>;
  /** What it has of moves of an instance that is this node's. */
  endRemains(uuid: string, signal: AbortSignal): Promise<RemainsEnded>;
}

type Session = Omit<WrittenTo, 'name'>;

export interface WrittenTo {
  readonly uuid: string;
  readonly session: string;
  readonly name: string;
}

export function createMigrationTargetClient(peers: Peers, node: string): MigrationTargetClient {
  const post = async <T extends z.ZodType>(
    path: string,
    answer: T,
    signal: AbortSignal,
    body: PeerRequest['body'] = json({}),
  ): Promise<z.output<T>> => {
    const asking = { method: 'POST', path: `/v1/arrivals/${path}`, body, signal };
    return askPeer(peers, node, asking, answer).catch((error: unknown) => {
      throw nameNode(error, node);
    });
  };
  return {
    check: async (uuid, signal) => void (await post(`${uuid}/check`, z.unknown(), signal)),
    begin: (uuid, files, signal) => post(`${uuid}/begin`, arrivalBegun, signal, json({ files })),
    write: async ({ uuid, session, name }, bytes, signal) => {
      const body = { type: 'application/octet-stream', bytes };
      const path = `${uuid}/${session}/files/${name}`;
      await patiently(() => post(path, z.unknown(), signal, body), signal);
    },
    verify: async ({ uuid, session }, digests, signal) => {
      const path = `${uuid}/${session}/verify`;
      await patiently(() => post(path, z.unknown(), signal, json({ digests })), signal);
    },
    checkMachine: async (uuid, nature, signal) =>
      void (await post(`${uuid}/check-machine`, z.unknown(), signal, json({ nature }))),
    expect: async ({ uuid, session }, expected, signal) =>
      void (await post(`${uuid}/${session}/expect`, z.unknown(), signal, json(expected))),
    openStream: ({ uuid, session, name }, signal) =>
      upgradePeer(peers, node, { path: `/v1/arrivals/${uuid}/${session}/streams/${name}`, signal }),
    sync: async ({ uuid, session }, signal) =>
      void (await post(`${uuid}/${session}/sync`, z.unknown(), signal)),
    handOver: async ({ uuid, session }, handover, signal) =>
      void (await post(`${uuid}/${session}/metadata`, z.unknown(), signal, json(handover))),
    awaitGuest: async ({ uuid, session }, signal) =>
      (await post(`${uuid}/${session}/await`, machineArrived, signal)).serialNo,
    end: (uuid, signal) => patiently(() => post(`${uuid}/end`, arrivalEnded, signal), signal),
    endRemains: (uuid, signal) => post(`${uuid}/end-remains`, remainsEnded, signal),
  };
}

function json(value: unknown): NonNullable<PeerRequest['body']> {
  return { type: 'application/json', bytes: Buffer.from(JSON.stringify(value)) };
}

async function patiently<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  let untilMs: number | undefined;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await ask();
    } catch (error) {
      const isCut = isAppError(error, 'NODE_UNREACHABLE') || isAppError(error, 'STORE_UNAVAILABLE');
      // What the other node does may take as long as it likes: patience is for what fails.
      untilMs ??= performance.now() + PATIENCE_MS;
      if (!isCut || performance.now() > untilMs) throw error;
      await sleep(pauseMs, undefined, { signal }).catch(() => {
        throw abortReason(signal);
      });
    }
  }
}

/** What it says of itself is not of the node that is read on. */
function nameNode(error: unknown, node: string): unknown {
  if (!isAppError(error) || error.message.includes(node)) return error;
  const { code, details, hint } = error;
  return new AppError(code, `node '${node}': ${error.message}`, {
    details: { ...details, node },
    hint,
    cause: error,
  });
}
