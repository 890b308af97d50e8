import { readFile } from 'node:fs/promises';
import nacl from 'tweetnacl';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { writeDurably } from '#shared/files/durable.ts';

/** Authenticates a node in its cluster. The secret half is sufficient to act as the node. */
export type NodeKey = nacl.BoxKeyPair;

/**
 * Loads the node's key, or makes it at the first start. The file (0600) holds the secret half in
 * base64.
 * @throws AppError FILE_UNREADABLE
 */
export async function loadNodeKey(path: string): Promise<NodeKey> {
  try {
    return parseKey(await readFile(path, 'utf8'));
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') {
      throw new AppError('FILE_UNREADABLE', `${path} cannot be used: ${messageOf(error)}`, {
        hint: 'Restore the file. Or remove it and remove this node from the cluster on another node: gnt-node remove NODE',
        cause: error,
      });
    }
  }
  const made = nacl.box.keyPair();
  await writeDurably(path, `${encodeKey(made.secretKey)}\n`, { mode: 0o600, isNew: true });
  return made;
}

export function encodeKey(key: Uint8Array): string {
  return Buffer.from(key).toString('base64');
}

function parseKey(text: string): NodeKey {
  const secretKey = Buffer.from(text.trim(), 'base64');
  if (secretKey.length !== nacl.box.secretKeyLength) throw new Error('it does not hold a node key');
  return nacl.box.keyPair.fromSecretKey(secretKey);
}
