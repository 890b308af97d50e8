import { basename } from 'node:path';
import ts from 'typescript';
import { applyMutant, type Mutant } from './mutants.ts';

/** A deletion leaves names without a use. The linter would notice, but no behaviour does. */
const RELAXED = { noUnusedLocals: false, noUnusedParameters: false };

export interface Compiler {
  /** Tells whether the compiler accepts the changed file. */
  accepts(mutant: Mutant): boolean;
  /** Tells whether it accepts the files that import the changed one, too. This takes longer. */
  acceptsImporters(mutant: Mutant): boolean;
}

/** Creates a compiler for mutants. `npm run check` finds those that it refuses, without a test. */
export function createCompiler(projectDir: string): Compiler {
  const { config } = ts.readConfigFile(`${projectDir}/tsconfig.json`, (path) =>
    ts.sys.readFile(path),
  ) as {
    readonly config: unknown;
  };
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, projectDir);
  let changed: { readonly name: string; readonly text: string } | null = null;
  let version = 0;
  const textOf = (name: string): string | undefined =>
    name === changed?.name ? changed.text : ts.sys.readFile(name);
  const service = ts.createLanguageService({
    ...ts.sys,
    useCaseSensitiveFileNames: () => true,
    getCompilationSettings: () => ({ ...options, ...RELAXED, incremental: false }),
    getScriptFileNames: () => fileNames,
    getScriptVersion: (name) => (name === changed?.name ? String(version) : '0'),
    getScriptSnapshot: (name) => {
      const text = textOf(name);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => projectDir,
    getDefaultLibFileName: (given) => ts.getDefaultLibFilePath(given),
  });
  const judge = (mutant: Mutant, files: readonly string[]): boolean => {
    changed = { name: `${projectDir}/${mutant.file}`, text: applyMutant(mutant) };
    version += 1;
    const found = files.flatMap((file) => [
      ...service.getSyntacticDiagnostics(file),
      ...service.getSemanticDiagnostics(file),
    ]);
    changed = null;
    return found.length === 0;
  };
  const importersOf = (file: string): readonly string[] => {
    const end = `/${basename(file)}'`;
    return fileNames.filter((name) => ts.sys.readFile(name)?.includes(end) === true);
  };
  return {
    accepts: (mutant) => judge(mutant, [`${projectDir}/${mutant.file}`]),
    acceptsImporters: (mutant) => judge(mutant, importersOf(mutant.file)),
  };
}
