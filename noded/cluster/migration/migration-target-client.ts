import type { Duplex } from 'node:stream';
import { pause } from '#shared/abort/until.ts';
import type { ArrivalBegun, ArrivalEnded, MovedFile, RemainsEnded } from '#shared/contract/move.ts';
import type { GuestHandover } from '#shared/contract/guest-handover.ts';
import {
  type Given,
  type JsonOf,
  locateEndpoint,
  type PeerKey,
} from '#shared/contract/locate-endpoint.ts';
import type { MachineExpected, MachineNature } from '#shared/contract/migration.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { askPeer, type Peers, upgradePeer } from '../peers/ask-peer.ts';

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
  /** Sends a file as a stream, which continues after an interruption. */
  sendFile(at: WrittenTo, transfer: FileTransfer, signal: AbortSignal): Promise<void>;
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

/** A file on its way. */
export interface FileTransfer {
  /** Position in the file up to which the target has confirmed all data. */
  readonly position: number;
  /** Sends the rest. @throws AppError NODE_UNREACHABLE: the stream was cut */
  send(stream: Duplex, signal: AbortSignal): Promise<void>;
}

type Session = Omit<WrittenTo, 'name'>;

export interface WrittenTo {
  readonly uuid: string;
  readonly session: string;
  readonly name: string;
}

type ArrivalKey = Extract<PeerKey, `POST /v1/arrivals/${string}`>;

export function createMigrationTargetClient(peers: Peers, node: string): MigrationTargetClient {
  const post = <Key extends ArrivalKey>(key: Key, ...given: Given<Key>): Promise<JsonOf<Key>> =>
    askPeer(peers, node, key, ...given).catch((error: unknown) => {
      throw nameNode(error, node);
    });
  return {
    check: async (uuid, signal) =>
      void (await post('POST /v1/arrivals/{uuid}/check', { uuid, signal })),
    begin: (uuid, files, signal) =>
      post('POST /v1/arrivals/{uuid}/begin', { uuid, body: { files: [...files] }, signal }),
    write: (at, body, signal) =>
      patiently(async () => {
        const input = { ...at, body, signal };
        await post('POST /v1/arrivals/{uuid}/{session}/files/{name}', input);
      }, signal),
    sendFile: (at, transfer, signal) => {
      const key = 'GET /v1/arrivals/{uuid}/{session}/files/{name}';
      const request = locateEndpoint(key, { ...at, signal });
      const send = async (): Promise<void> => {
        const stream = await upgradePeer(peers, node, request).catch((error: unknown) => {
          throw nameNode(error, node);
        });
        await transfer.send(stream, signal);
      };
      return patiently(send, signal, () => transfer.position);
    },
    verify: (at, digests, signal) =>
      patiently(async () => {
        const input = { ...at, body: { digests }, signal };
        await post('POST /v1/arrivals/{uuid}/{session}/verify', input);
      }, signal),
    checkMachine: async (uuid, nature, signal) =>
      void (await post('POST /v1/arrivals/{uuid}/check-machine', {
        uuid,
        body: { nature },
        signal,
      })),
    expect: async (at, body, signal) =>
      void (await post('POST /v1/arrivals/{uuid}/{session}/expect', { ...at, body, signal })),
    openStream: (at, signal) => {
      const key = 'GET /v1/arrivals/{uuid}/{session}/streams/{name}';
      return upgradePeer(peers, node, locateEndpoint(key, { ...at, signal }));
    },
    sync: async (at, signal) =>
      void (await post('POST /v1/arrivals/{uuid}/{session}/sync', { ...at, signal })),
    handOver: async (at, handover, signal) => {
      const body = { ...handover, connections: [...handover.connections] };
      await post('POST /v1/arrivals/{uuid}/{session}/metadata', { ...at, body, signal });
    },
    awaitGuest: async (at, signal) =>
      (await post('POST /v1/arrivals/{uuid}/{session}/await', { ...at, signal })).serialNo,
    end: (uuid, signal) =>
      patiently(() => post('POST /v1/arrivals/{uuid}/end', { uuid, signal }), signal),
    endRemains: (uuid, signal) => post('POST /v1/arrivals/{uuid}/end-remains', { uuid, signal }),
  };
}

/** @param progressOf the limit begins again after a failure that follows progress */
async function patiently<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
  progressOf: () => number = () => 0,
): Promise<T> {
  let untilMs: number | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  for (let reached = progressOf(); ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (progressOf() > reached) {
        reached = progressOf();
        pauseMs = FIRST_PAUSE_MS;
        untilMs = undefined;
      }
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
