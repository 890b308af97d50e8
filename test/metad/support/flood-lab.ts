import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, before, beforeEach } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import type { InstanceView } from '#shared/contract/view.ts';
import { ChannelLab, type Guest } from './channel-lab.ts';
import { connectFromGuest } from './guest-http.ts';
import { installingView } from './view-fixture.ts';

export const HOST_LINE = 'Host: 169.254.169.254\r\n';

/** A metad, and one guest for each test, since an excluded guest stays excluded for a while. */
export interface FloodLab {
  readonly lab: ChannelLab;
  /** The guest of the present test. */
  readonly guest: Guest;
  readonly view: InstanceView;
  /** Adds an unaffected guest. */
  addNeighbour(): Promise<Guest>;
  /** Returns the number of refused requests by reason. */
  refusals(reason: string): Promise<number>;
  /** Returns the number of outstanding requests. */
  unanswered(): Promise<number>;
  /** Opens a connection of the guest, which may be reset. */
  connect(): Promise<Socket>;
}

/** Registers a lab for the calling file. */
export function useFloodLab(): FloodLab {
  let lab: ChannelLab;
  let guest: Guest;
  let view: InstanceView;
  let guests = 0;
  before(async () => {
    lab = await ChannelLab.create();
  });
  after(async () => {
    await lab[Symbol.asyncDispose]();
  });
  const addGuest = async (): Promise<readonly [Guest, InstanceView]> => {
    guests += 1;
    const channel = {
      device: `gnt.com.${guests}`,
      mac: `52:54:00:e1:a3:${(0x10 + guests).toString(16)}`,
      ip: `169.254.3.${guests}`,
      hopLimit: 1,
    };
    const uuid = `00000000-1f3d-49e9-b2b7-0000000000${guests + 10}`;
    const added = await lab.addGuest(channel);
    const its = installingView({ uuid, name: `web${guests}.example.com`, nics: [], channel });
    assert.equal((await lab.put(its)).status, 204);
    return [added, its];
  };
  beforeEach(async () => {
    [guest, view] = await addGuest();
  });
  const metric = async (line: RegExp): Promise<number> => {
    const { body } = await lab.control('GET', '/metrics');
    return Number(line.exec(body.toString())?.[1] ?? 0);
  };
  return {
    get lab() {
      return lab;
    },
    get guest() {
      return guest;
    },
    get view() {
      return view;
    },
    addNeighbour: async () => (await addGuest())[0],
    refusals: (reason) =>
      metric(new RegExp(`^gnt_metad_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm')),
    unanswered: () => metric(/^gnt_metad_unanswered_requests (\d+)$/m),
    connect: async () => {
      const socket = connectFromGuest(guest.namespace);
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      return socket;
    },
  };
}

/** Not `once`: a reset is an error too. */
export async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
}

export async function waitUntil(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await sleep(20);
}
