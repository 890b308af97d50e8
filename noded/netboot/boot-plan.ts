import type { BootEnv, BootParam } from '#shared/contract/boot-env.ts';
import type { Visibility } from '#shared/contract/primitives.ts';
import type { Secret } from '#shared/secret/secret.ts';

/** An OS parameter as boot environments see it; null where only a secret's name is known. */
export interface BootParameter {
  readonly visibility: Visibility;
  readonly value: string | Secret | null;
}

/** What an archive's name stands for at one moment. */
export interface ArchiveContent {
  readonly sha256: string;
  has(path: string): boolean;
}

export interface BootPlanInput {
  readonly machine: {
    readonly name: string;
    readonly uuid: string;
    /** The channel's, in lower case with colons. */
    readonly mac: string;
    /** The channel's. */
    readonly address: string;
    readonly profiles?: readonly string[];
  };
  /** As the store has it, not yet customized. */
  readonly bootEnv: BootEnv;
  /** Contents by ID; what is built in need not be among them. */
  readonly templates: ReadonlyMap<string, string>;
  /** By name. A schema gives its param a type, and a default where no parameter is in force. */
  readonly schemas: ReadonlyMap<string, BootParam>;
  /** Those in force. */
  readonly parameters: ReadonlyMap<string, BootParameter>;
  /** All there are, the lowest first: ParamCompose joins what each of them says. */
  readonly layers: readonly { readonly values: ReadonlyMap<string, BootParameter> }[];
  /**
   * The opened archive on this node, or null when there is none of that checksum, if one is given.
   */
  readonly archive: (isoFile: string, sha256: string) => ArchiveContent | null;
  /** Whether a repository is below a package mirror that the administrator allowed. */
  readonly isAllowed: (url: string) => boolean;
  /** Where a machine that is being installed reaches a URL by its channel; null where it cannot. */
  readonly mirrorUrl: (url: string) => string | null;
  /** The allowed mirrors themselves, by name. */
  readonly packageMirrors: Readonly<Record<string, string>>;
  /** URL of the file root: http://169.254.169.254/ganeti/latest/boot */
  readonly baseUrl: string;
}

export interface BootFile {
  /** Below the file root. */
  readonly path: string;
  /** Null when it needs secrets that are lost. */
  readonly contents: string | null;
  /** A parameter went into it that is not public. */
  readonly isSecretBearing: boolean;
  readonly lostSecrets: readonly string[];
  /** Digest of what is in it besides secrets; null where it has none. */
  readonly basis: string | null;
}

/** What machines/UUID/boot/ shows. */
export type BootSource =
  | {
      readonly kind: 'archive';
      readonly isoFile: string;
      /** The content that was planned with, whatever the name comes to mean. */
      readonly sha256: string;
    }
  | { readonly kind: 'repository'; readonly url: string };

export interface BootPlan {
  readonly bootEnv: string;
  readonly osName: string;
  /** The path of the machine's iPXE script, which is one of the files. */
  readonly script: string;
  readonly files: readonly BootFile[];
  /** Null for a BootEnv that loads nothing, as one that boots the disk. */
  readonly source: BootSource | null;
  /** Paths in the source; those of an archive are there, a repository was not asked. */
  readonly kernel: string | null;
  readonly initrds: readonly string[];
  /** What a UEFI firmware loads by HTTP, a path in the source. */
  readonly httpLoader: string | null;
  /** In whole phrases, what the BootEnv says and nothing is made of. */
  readonly leftOut: readonly string[];
  /** Members of dr-provision that templates read and that have a constant value here. */
  readonly constants: readonly string[];
  /** Whether its installation would load nothing. */
  readonly lacksKernel: boolean;
}
