import ts from 'typescript';
import { applyMutant, type Mutant } from './mutants.ts';

/** A deletion leaves names without a use. The linter would notice, but no behaviour does. */
const RELAXED = { noUnusedLocals: false, noUnusedParameters: false };

/**
 * Returns a function that tells whether the compiler accepts a mutant. `npm run check` finds the
 * others, without a test.
 */
export function createCompiler(projectDir: string): (mutant: Mutant) => boolean {
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
  return (mutant) => {
    const name = `${projectDir}/${mutant.file}`;
    changed = { name, text: applyMutant(mutant) };
    version += 1;
    const found = [
      ...service.getSyntacticDiagnostics(name),
      ...service.getSemanticDiagnostics(name),
    ];
    changed = null;
    return found.length === 0;
  };
}
