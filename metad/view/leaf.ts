import type { Cloud } from '#shared/contract/cloud-credentials.ts';

export type Leaf = FixedLeaf | LiveLeaf;

export interface FixedLeaf {
  readonly kind: 'fixed';
  readonly body: Buffer;
  readonly contentType: string;
  /** Answers carry `Cache-Control: no-store`. */
  readonly isSecretBearing: boolean;
  /** Readable by the agent of an installation, not by the scripts beside it. */
  readonly isForAgent?: boolean;
  /** Answers are 410 with this text; null when the content exists. */
  readonly goneReason: string | null;
  readonly whenPartial?: FixedLeaf;
}

/** Live folders: all paths below them come from the same source. */
const FOLDER_NAMES = ['mirror', 'boot'] as const;
export type FolderName = (typeof FOLDER_NAMES)[number];
/** A cloud: its temporary credentials. */
type LiveSource = 'read' | 'identity' | Cloud | FolderName | StreamName;
/** Files too big for memory. */
export type StreamName = 'image' | 'package' | 'install-package';
export interface LiveLeaf {
  readonly kind: 'live';
  readonly source: LiveSource;
}

export function isFolderName(name: StreamName | FolderName): name is FolderName {
  return FOLDER_NAMES.some((folder) => folder === name);
}

/** Paths below the dialect's version folder, without a leading slash. Folders follow from them. */
export type Leaves = Map<string, Leaf>;

const TEXT = 'text/plain; charset=utf-8';

export function textLeaf(text: string, options: { isSecretBearing?: boolean } = {}): FixedLeaf {
  return fixedLeaf(Buffer.from(text), TEXT, options.isSecretBearing ?? false);
}

export function jsonLeaf(value: unknown, options: { isSecretBearing?: boolean } = {}): FixedLeaf {
  return fixedLeaf(
    Buffer.from(`${JSON.stringify(value, null, 2)}\n`),
    'application/json',
    options.isSecretBearing ?? false,
  );
}

export function bytesLeaf(
  body: Buffer,
  options: { contentType?: string; isSecretBearing?: boolean } = {},
): FixedLeaf {
  return fixedLeaf(
    body,
    options.contentType ?? 'application/octet-stream',
    options.isSecretBearing ?? false,
  );
}

export function agentLeaf(value: unknown): FixedLeaf {
  return { ...jsonLeaf(value, { isSecretBearing: true }), isForAgent: true };
}

function goneLeaf(reason: string): FixedLeaf {
  return {
    kind: 'fixed',
    body: Buffer.from(`${reason}\n`),
    contentType: TEXT,
    isSecretBearing: true,
    goneReason: reason,
  };
}

/** Replaces content that needs secrets which noded has lost. */
export function lostLeaf(names: readonly string[]): FixedLeaf {
  return goneLeaf(describeLost(names));
}

export function describeLost(names: readonly string[]): string {
  const list = [...names].sort().join(', ');
  return `the host has lost the secret OS parameters ${list}: they are kept in memory only; give them again with gnt-instance modify, startup or reinstall`;
}

function fixedLeaf(body: Buffer, contentType: string, isSecretBearing: boolean): FixedLeaf {
  return { kind: 'fixed', body, contentType, isSecretBearing, goneReason: null };
}
