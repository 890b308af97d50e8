import nacl from 'tweetnacl';
import { AppError } from '../errors/app-error.ts';
import { decodeListed } from './encode.ts';
import type { Store, StoredRecord } from './store.ts';

/** Bytes of a cluster's key. */
export const CLUSTER_KEY_BYTES = nacl.secretbox.keyLength;

export function makeClusterKey(): Uint8Array {
  return nacl.randomBytes(CLUSTER_KEY_BYTES);
}

/**
 * A store whose values nobody reads or makes without the key: each is a secretbox
 * (XSalsa20-Poly1305, random nonce) in base64 over its collection, its id and itself, so that a
 * record cannot take another one's place either. Collections, ids and revisions stay as they are.
 * Who can write to the store below can still delete records and put older ones of the same id back.
 * @throws AppError STORE_KEY from `get` when a record was not sealed with this key; in a list it is
 * that record's problem
 */
export function createSealedStore(store: Store, key: Uint8Array): Store {
  const open = (collection: string, record: StoredRecord): StoredRecord => ({
    ...record,
    value: openValue(collection, record, key),
  });
  return {
    get: async (collection, id) => {
      const record = await store.get(collection, id);
      return record && open(collection, record);
    },
    list: async (collection) =>
      (await store.list(collection)).map((record) =>
        record.problem === undefined
          ? decodeListed({ id: record.id, revision: record.revision }, () =>
              openValue(collection, record, key),
            )
          : record,
      ),
    commit: (writes) =>
      store.commit(
        writes.map((write) =>
          write.value === undefined ? write : { ...write, value: sealValue(write, key) },
        ),
      ),
    ...(store.watch && { watch: store.watch.bind(store) }),
    close: () => store.close(),
  };
}

function sealValue(
  write: { readonly collection: string; readonly id: string; readonly value: unknown },
  key: Uint8Array,
): string {
  const plain = Buffer.from(JSON.stringify([write.collection, write.id, write.value]));
  const nonce = nacl.randomBytes(nacl.secretbox.nonceLength);
  return Buffer.concat([nonce, nacl.secretbox(plain, nonce, key)]).toString('base64');
}

function openValue(collection: string, { id, value }: StoredRecord, key: Uint8Array): unknown {
  const sealed = Buffer.from(typeof value === 'string' ? value : '', 'base64');
  const nonce = sealed.subarray(0, nacl.secretbox.nonceLength);
  const plain =
    nonce.length === nacl.secretbox.nonceLength
      ? nacl.secretbox.open(sealed.subarray(nonce.length), nonce, key)
      : null;
  if (plain !== null) {
    // Its maker had the key: the shape is ours.
    const [madeFor, madeForId, opened] = JSON.parse(Buffer.from(plain).toString()) as unknown[];
    if (madeFor === collection && madeForId === id) return opened;
  }
  throw new AppError('STORE_KEY', `the record ${collection}/${id} is not sealed with this key`, {
    details: { collection, id },
    hint: 'cluster.key has to be the same on all nodes of a cluster; if it is, somebody else wrote to the store',
  });
}
