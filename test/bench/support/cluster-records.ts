import { randomUUID } from 'node:crypto';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { ringOf } from '#shared/store/sealed-store.ts';
import { readClusterKey } from '#shared/store/store-choice.ts';
import type { Store } from '#shared/store/store.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createOpcode } from '../../noded/support/opcodes.ts';

/** A larger commit would block the server for others. */
const AT_ONCE = 200;
const MAC_BYTES = 3;
/** A cluster has 65,023 addresses. Later records reuse those of others, and some stay free. */
const ADDRESSES = 60_000;
/** 169.254.1.0. */
const FIRST_ADDRESS = 0x0100;

/** Opens a cluster's records with its key, without being a node. */
export async function openClusterRecords(
  url: string,
  keyFile: string,
): Promise<{ readonly store: Store }> {
  const key = await readClusterKey(keyFile);
  if (key === undefined) throw new Error(`${keyFile} is missing`);
  return openSealedRedis(url, () => ringOf(key), silentLogger);
}

export const nameOfBench = (index: number): string => `bench${index}.example.com`;

/**
 * Adds installed and stopped instances with their claims, from index `from` to `to` (exclusive).
 * Each has one disk, one NIC and 1 KiB of user data. The nodes alternate.
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

/** Returns a new instance for `create`. */
export function newBenchInstance(name: string, node: string) {
  return planNewInstance(createOpcode({ name, install: false }), {
    nodeName: node,
    newUuid: randomUUID,
    newMac: () => 'aa:00:00:00:00:01',
  });
}
