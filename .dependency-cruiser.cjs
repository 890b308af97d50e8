const { readdirSync } = require('node:fs');
const { join } = require('node:path');

/**
 * The import table of the house: programs never import each other, shared imports only itself,
 * folders point one way.
 */
const programs = ['metad', 'noded', 'appliance', 'cluster-cli'];

/**
 * The folders of each program, the ground first: a folder imports those before it in its list and
 * none behind it. Files at the top of a program (`main.ts` and the wiring) stand above all of its
 * folders.
 */
const layers = {
  metad: [
    'config',
    'view',
    'dialects',
    'channel',
    'http',
    'services',
    'names',
    'dhcp',
    'control',
    'ganeti',
  ],
  noded: [
    ...['host', 'storage', 'content', 'jobs', 'records', 'netboot', 'net', 'vmm', 'instances'],
    ...['provision', 'cluster', 'operations', 'api', 'wiring'],
  ],
  'noded/content': ['downloads', 'signatures', 'images', 'catalogue'],
  'noded/net': ['channel', 'tenant', 'relay', 'metad-link'],
  'noded/instances': [
    ...['run-lists', 'backup', 'parameters', 'identity', 'view', 'machines', 'record', 'reports'],
  ],
  'noded/provision': ['os', 'appliance', 'install'],
  'noded/cluster': ['peers', 'images', 'membership', 'feed', 'placement', 'migration'],
  'noded/api': ['http', 'rapi', 'identity', 'web'],
  'appliance/agent': [
    ...['process', 'report', 'channel', 'overlay', 'disks', 'image', 'scripts', 'hooks', 'stages'],
  ],
  'cluster-cli': [
    ...[
      'values',
      'failures',
      'client',
      'terminal',
      'render',
      'fields',
      'completion',
      'help',
      'manual',
      'progress',
    ],
    'commands',
  ],
  shared: [
    ...[
      'units',
      'json',
      'text',
      'build',
      'serial',
      'bounds',
      'clock',
      'errors',
      'abort',
      'contract',
      'yaml',
      'secret',
      'log',
      'paths',
    ],
    ...['sys', 'files', 'stream', 'http', 'socket', 'process', 'sandbox', 'store', 'cluster'],
  ],
};

const oneDirection = Object.entries(layers).flatMap(([program, folders]) =>
  folders.map((folder, index) => {
    const below = folders.slice(0, index + 1).join('|');
    return {
      name: `${program}-${folder}-imports-only-what-is-below-it`,
      severity: 'error',
      from: { path: `^${program}/${folder}/` },
      to: { path: `^${program}/`, pathNot: `^${program}/(${below})/` },
    };
  }),
);
/** A folder that is in no list would be outside of the rule above. */
for (const [program, folders] of Object.entries(layers)) {
  const files = readdirSync(join(__dirname, program), { recursive: true });
  const found = files.flatMap((file) => /^([^/]+)\/.*\.ts$/.exec(file)?.[1] ?? []);
  const odd = [...new Set(found).symmetricDifference(new Set(folders))];
  if (odd.length > 0)
    throw new Error(`${program}/ and its list of layers do not agree on: ${odd.join(', ')}`);
}

module.exports = {
  forbidden: [
    ...oneDirection,
    ...[
      ['the-agent', 'appliance/agent/', 'shared/'],
      ['the-template-engine', 'noded/netboot/template/', 'shared/json/'],
      ['the-store', 'shared/store/', 'shared/(clock|errors|files|json|log|paths|units)/'],
    ].map(([name, folder, below]) => ({
      name: `${name}-stands-alone`,
      severity: 'error',
      from: { path: `^${folder}` },
      to: {
        path: `^(${programs.join('|')}|shared)/`,
        pathNot: `^(${folder}|${below})`,
      },
    })),
    {
      name: 'noded-parses-no-yaml',
      comment: "YAML is the users': it is read in the appliance, or by a process without power.",
      severity: 'error',
      from: { path: '^noded/' },
      to: { path: 'node_modules/yaml/' },
    },
    {
      name: 'the-builder-reads-no-hooks',
      comment: 'It is root, and has them judged (shared/sandbox/judge-hooks.ts).',
      severity: 'error',
      from: { path: '^appliance/(image/|main.ts)' },
      to: { path: '^appliance/agent/hooks/' },
    },
    {
      name: 'nobody-imports-tests',
      comment:
        'What tests are made with stays below test/; production code reads no fixture either.',
      severity: 'error',
      from: { pathNot: '^test/' },
      to: { path: '^test/' },
    },
    {
      name: 'programs-do-not-import-scripts',
      severity: 'error',
      from: { path: `^(${programs.join('|')}|shared)/` },
      to: { path: '^scripts/' },
    },
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
        path: `^(${[...programs, 'fixtures'].filter((p) => p !== name).join('|')})/`,
      },
    })),
    {
      name: 'shared-imports-only-itself',
      severity: 'error',
      from: { path: '^shared/' },
      to: { path: `^(${programs.join('|')}|fixtures)/` },
    },
    {
      name: 'errors-and-contract-import-nothing-above-them',
      severity: 'error',
      from: { path: '^shared/(errors|contract)/' },
      to: { path: '^shared/', pathNot: '^shared/(errors|contract|units|json)/' },
    },
    {
      name: 'the-client-stands-alone',
      comment: 'Programs of others use it too.',
      severity: 'error',
      from: { path: '^client/' },
      to: { path: `^(${programs.join('|')}|shared|web|scripts)/` },
    },
    {
      name: 'the-page-imports-the-client-and-schemas',
      severity: 'error',
      from: { path: '^web/' },
      to: {
        path: `^(${programs.join('|')}|scripts|shared)/`,
        pathNot: '^shared/(contract|units|json)/',
      },
    },
    {
      name: 'programs-do-not-import-the-page',
      severity: 'error',
      from: { path: `^(${programs.join('|')}|shared)/` },
      to: { path: '^(web|client)/' },
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
      extensions: ['.ts', '.tsx', '.js'],
    },
  },
};
