import { randomUUID } from 'node:crypto';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openSealedRedis } from '#shared/store/cluster-store.ts';
import { ringOf } from '#shared/store/sealed-store.ts';
import { readClusterKey } from '#shared/store/store-choice.ts';
import type { Store } from '#shared/store/store.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createOpcode } from '../../noded/support/opcodes.ts';

/** A commit of so many records is small enough to leave the server free for others. */
const AT_ONCE = 200;
const MAC_BYTES = 3;
/** A cluster has 65,023: some are left, and records beyond these have those of others. */
const ADDRESSES = 60_000;
/** 169.254.1.0. */
const FIRST_ADDRESS = 0x0100;

/** The records of a cluster, opened with its key by somebody who is no node of it. */
export async function openClusterRecords(
  url: string,
  keyFile: string,
): Promise<{ readonly store: Store }> {
  const key = await readClusterKey(keyFile);
  if (key === undefined) throw new Error(`${keyFile} is missing`);
  return openSealedRedis(url, () => ringOf(key), silentLogger);
}

/** The name of the instance with that number. */
export const nameOfBench = (index: number): string => `bench${index}.example.com`;

/**
 * Records of instances `from` up to, and without, `to`, with what they claim: installed, stopped,
 * with one disk, one card and 1 KiB of user data, on the nodes in turn.
 */
export async function addRecords(
  store: Store,
  nodes: readonly string[],
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  for (let begin = from; begin < to; begin += AT_ONCE) {
    const indices = Array.from(
      { length: Math.min(AT_ONCE, to - begin) },
      (_, offset) => begin + offset,
    );
    const records = indices.map((index) => benchRecord(index, nodes[index % nodes.length] ?? ''));
    await store.commit(
      records.flatMap((record) => [
        { collection: 'instances', id: record.uuid, expected: 'absent', value: record },
        { collection: 'claim-name', id: record.name, expected: 'absent', value: record.uuid },
        { collection: 'claim-ip', id: record.channel.ip, expected: 'any', value: record.uuid },
        { collection: 'claim-mac', id: record.channel.mac, expected: 'absent', value: record.uuid },
      ]),
    );
  }
}

export function benchRecord(index: number, node: string): InstanceRecord {
  const opcode = createOpcode({
    ...{ name: nameOfBench(index), osType: 'debootstrap+default', install: false },
    ...{ userData: Buffer.alloc(1024).toString('base64'), tags: ['bench'] },
  });
  const { channelNicUuid, ...planned } = planNewInstance(opcode, {
    nodeName: node,
    newUuid: randomUUID,
    newMac: () => `aa:${macTail(index)}`,
  });
  const host = FIRST_ADDRESS + (index % ADDRESSES);
  return {
    ...planned,
    adminState: 'down',
    installState: 'installed',
    channel: {
      ip: `169.254.${host >> 8}.${host & 0xff}`,
      mac: `52:54:00:${macTail(index)}`,
      uuid: channelNicUuid,
    },
    ...{ createdAtMs: 1000, modifiedAtMs: 1000, serialNo: 1 },
  };
}

function macTail(index: number): string {
  const bytes = Buffer.alloc(MAC_BYTES);
  bytes.writeUIntBE(index, 0, MAC_BYTES);
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}

/** A record as `create` takes it, for a new name. */
export function newBenchInstance(name: string, node: string) {
  return planNewInstance(createOpcode({ name, install: false }), {
    nodeName: node,
    newUuid: randomUUID,
    newMac: () => 'aa:00:00:00:00:01',
  });
}
