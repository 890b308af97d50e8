import type { FileHandle } from 'node:fs/promises';
import { askMirror, type MirrorAnswer, type MirrorRequest } from './ask-mirror.ts';

/** A part of a file of the host's that is a file of the tree. */
export interface BootSlice {
  readonly kind: 'slice';
  /** Whoever gets it closes it; what replaces the tree meanwhile does not touch it. */
  readonly handle: FileHandle;
  readonly offset: number;
  readonly sizeBytes: number;
  /** Another one for other bytes. With its quotes. */
  readonly etag: string;
}

/** What an instance finds below `machines/<uuid>/boot/`: an archive's files or a repository's. */
export interface BootTree {
  /** @param request its path is percent-encoded, without a leading slash */
  open(request: MirrorRequest): Promise<BootSlice | MirrorAnswer>;
}

/** @param url of the repository, which the administrator allows */
export function createRepositoryTree(url: string): BootTree {
  return { open: (request) => askMirror(url, request) };
}
