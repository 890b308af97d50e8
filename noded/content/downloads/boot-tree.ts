import type { FileHandle } from 'node:fs/promises';
import { askMirror, type MirrorAnswer, type MirrorRequest } from './ask-mirror.ts';

export interface BootSlice {
  readonly kind: 'slice';
  /** The caller closes it. It stays valid when the tree is replaced. */
  readonly handle: FileHandle;
  readonly offset: number;
  readonly sizeBytes: number;
  /** With its quotes. Differs for other bytes. */
  readonly etag: string;
}

/** The files below an instance's `machines/<uuid>/boot/`: those of an archive or a repository. */
export interface BootTree {
  /** @param request its path is percent-encoded, without a leading slash */
  open(request: MirrorRequest): Promise<BootSlice | MirrorAnswer>;
}

/** @param url of an allowed repository */
export function createRepositoryTree(url: string): BootTree {
  return { open: (request) => askMirror(url, request) };
}
