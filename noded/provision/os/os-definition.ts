export type OsScriptName = 'create' | 'import' | 'export' | 'rename' | 'verify';

export interface OsParameterDescription {
  readonly name: string;
  readonly description: string;
}

/** A valid OS definition of this node. */
export interface OsDefinition {
  readonly name: string;
  readonly path: string;
  /** Versions that the definition declares. */
  readonly apiVersions: readonly number[];
  /** The newest version that the definition and this node support. */
  readonly apiVersion: number;
  readonly variants: readonly string[];
  readonly parameters: readonly OsParameterDescription[];
  /** Absolute paths. */
  readonly hostScripts: Readonly<Partial<Record<OsScriptName, string>>>;
  /** Paths within the definition, such as `untrusted/create` and `create_untrusted`. */
  readonly applianceScripts: Readonly<Partial<Record<OsScriptName, string>>>;
}
