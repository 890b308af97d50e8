export type OsScriptName = 'create' | 'import' | 'export' | 'rename' | 'verify';

export interface OsParameterDescription {
  readonly name: string;
  readonly description: string;
}

/** A valid OS definition as found on this node. */
export interface OsDefinition {
  readonly name: string;
  /** Its directory. */
  readonly path: string;
  /** What the definition declares. */
  readonly apiVersions: readonly number[];
  /** The newest that both sides know. */
  readonly apiVersion: number;
  readonly variants: readonly string[];
  readonly parameters: readonly OsParameterDescription[];
  /** Absolute paths of the trusted scripts. */
  readonly hostScripts: Readonly<Partial<Record<OsScriptName, string>>>;
  /**
   * Paths within the definition (`untrusted/create`, `create_untrusted`) of the scripts for the
   * appliance.
   */
  readonly applianceScripts: Readonly<Partial<Record<OsScriptName, string>>>;
}
