import type { BootEnv, BootParam } from '#shared/contract/boot-env.ts';
import type { Visibility } from '#shared/contract/primitives.ts';
import type { Secret } from '#shared/secret/secret.ts';

/** An OS parameter as boot environments see it. Null: only the name of a secret is known. */
export interface BootParameter {
  readonly visibility: Visibility;
  readonly value: string | Secret | null;
}

export interface ArchiveContent {
  readonly sha256: string;
  has(path: string): boolean;
}

export interface BootPlanInput {
  readonly machine: {
    readonly name: string;
    readonly uuid: string;
    /** Of the channel's NIC, in lower case with colons. */
    readonly mac: string;
    readonly address: string;
    readonly profiles?: readonly string[];
  };
  /** As stored, before customization. */
  readonly bootEnv: BootEnv;
  /** Contents by ID. Built-in templates may be absent. */
  readonly templates: ReadonlyMap<string, string>;
  /** By name. A schema gives its param a type, and a default for an absent parameter. */
  readonly schemas: ReadonlyMap<string, BootParam>;
  readonly parameters: ReadonlyMap<string, BootParameter>;
  /** All layers, the lowest first. ParamCompose joins their values. */
  readonly layers: readonly { readonly values: ReadonlyMap<string, BootParameter> }[];
  /** Returns the opened archive on this node, or null when none has that checksum. */
  readonly archive: (isoFile: string, sha256: string) => ArchiveContent | null;
  /** Whether a repository is below an allowed package mirror. */
  readonly isAllowed: (url: string) => boolean;
  /** Returns the channel's URL for a package mirror's URL; null for any other URL. */
  readonly mirrorUrl: (url: string) => string | null;
  readonly packageMirrors: Readonly<Record<string, string>>;
  /** URL of the file root: http://169.254.169.254/ganeti/latest/boot */
  readonly baseUrl: string;
}

export interface BootFile {
  readonly path: string;
  /** Null when the file needs lost secrets. */
  readonly contents: string | null;
  /** True when the file contains a private or secret parameter. */
  readonly isSecretBearing: boolean;
  readonly lostSecrets: readonly string[];
  /** Digest of the file's inputs without secrets; null for a file without secrets. */
  readonly basis: string | null;
}

/** Content of `machines/UUID/boot/`. */
export type BootSource =
  | {
      readonly kind: 'archive';
      readonly isoFile: string;
      /** The planned content. The name may mean other content later. */
      readonly sha256: string;
    }
  | { readonly kind: 'repository'; readonly url: string };

export interface BootPlan {
  readonly bootEnv: string;
  readonly osName: string;
  /** Path of the instance's iPXE script, which is among the files. */
  readonly script: string;
  readonly files: readonly BootFile[];
  /** Null for a BootEnv that loads no file, such as `local`. */
  readonly source: BootSource | null;
  /** Paths in the source. The plan checks them in an archive, not in a repository. */
  readonly kernel: string | null;
  readonly initrds: readonly string[];
  /** Path in the source of the file that UEFI firmware loads by HTTP. */
  readonly httpLoader: string | null;
  /** Ignored parts of the BootEnv, as phrases for messages. */
  readonly leftOut: readonly string[];
  readonly constants: readonly string[];
  readonly lacksKernel: boolean;
}
