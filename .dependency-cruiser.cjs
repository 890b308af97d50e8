/** The import table of the house: programs never import each other, shared imports only itself. */
const programs = ['metad', 'noded', 'appliance', 'cluster-cli'];
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'Types may refer to each other; modules that run may not.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    ...programs.map((name) => ({
      name: `${name}-imports-only-itself-and-shared`,
      severity: 'error',
      from: { path: `^${name}/` },
      to: {
        path: `^(${[...programs, 'test', 'fixtures', 'scripts'].filter((p) => p !== name).join('|')})/`,
      },
    })),
    {
      name: 'shared-imports-only-itself',
      severity: 'error',
      from: { path: '^shared/' },
      to: { path: `^(${programs.join('|')}|test|fixtures|scripts)/` },
    },
    {
      name: 'errors-and-contract-import-nothing-above-them',
      severity: 'error',
      from: { path: '^shared/(errors|contract)/' },
      to: { path: '^shared/', pathNot: '^shared/(errors|contract)/' },
    },
    { name: 'not-to-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js'],
    },
  },
};
