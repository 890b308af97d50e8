import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { pause } from '#shared/abort/until.ts';
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

/** Limit for interruptions of the link or the store. */
const PATIENCE_MS = 5 * 60_000;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5000;

/**
 * Calls the target node of a move. Calls of a session are repeated after an interrupted link until
 * the limit.
 */
export interface MigrationTargetClient {
  /**
   * Checks whether the target would take the instance, without a change.
   * @throws AppError the target's refusal
   */
  check(uuid: string, signal: AbortSignal): Promise<void>;
  begin(uuid: string, files: readonly MovedFile[], signal: AbortSignal): Promise<ArrivalBegun>;
  write(at: WrittenTo, message: Buffer, signal: AbortSignal): Promise<void>;
  verify(
    at: Session,
    digests: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Checks the same for a running guest. @throws AppError the target's refusal */
  checkMachine(uuid: string, nature: MachineNature, signal: AbortSignal): Promise<void>;
  expect(at: Session, expected: MachineExpected, signal: AbortSignal): Promise<void>;
  openStream(at: WrittenTo, signal: AbortSignal): Promise<Duplex>;
  /** Syncs the copied disks while the guest runs, so that little remains for the switch. */
  sync(at: Session, signal: AbortSignal): Promise<void>;
  /** Hands over the paused guest's state in metad. */
  handOver(at: Session, handover: GuestHandover, signal: AbortSignal): Promise<void>;
  /** @returns the serial number that the record must have at the commit */
  awaitGuest(at: Session, signal: AbortSignal): Promise<number>;
  end(uuid: string, signal: AbortSignal): Promise<ArrivalEnded>;
  /** Ends leftovers of moves of an instance of this node. */
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
      // Only counts repeated failures, because a successful call may take any time.
      untilMs ??= performance.now() + PATIENCE_MS;
      if (!isCut || performance.now() > untilMs) throw error;
      await pause(pauseMs, signal);
      signal.throwIfAborted();
    }
  }
}

/** The other node's error names no node. */
function nameNode(error: unknown, node: string): unknown {
  if (!isAppError(error) || error.message.includes(node)) return error;
  const { code, details, hint } = error;
  return new AppError(code, `node '${node}': ${error.message}`, {
    details: { ...details, node },
    hint,
    cause: error,
  });
}
