import js from '@eslint/js';
import regexp from 'eslint-plugin-regexp';
import ts from 'typescript';
import tseslint from 'typescript-eslint';

const refusedSyntax = [
  { selector: 'ExportAllDeclaration', message: 'no barrels' },
  { selector: 'TSEnumDeclaration', message: 'use a union or as const' },
  {
    // return-await looks at async functions only; a plain one may hand out a promise of what it has
    // already disposed of.
    selector:
      ':function[async=false][returnType.typeAnnotation.typeName.name="Promise"] > BlockStatement > VariableDeclaration[kind=/using$/]',
    message: 'make the function async, so that return-await sees what it returns',
  },
  {
    // preserve-caught-error knows JavaScript's own errors only.
    selector:
      'CatchClause[param] ThrowStatement > NewExpression[callee.name="AppError"]:not(:has(Property[key.name="cause"]))',
    message: 'give the caught error as the cause',
  },
];

/** Functions whose types other files read: programs only, not tests. */
const untypedResults = [
  {
    // The result of a factory is the component's type, so that "go to definition" lands in its code.
    selector:
      'ExportNamedDeclaration > FunctionDeclaration:not([returnType]):not([id.name=/^(create|open|load)/])',
    message: 'state the return type; only the factory of a component leaves it to its body',
  },
  {
    selector:
      'MethodDefinition[kind=/^(method|get)$/][key.type="Identifier"] > FunctionExpression:not([returnType])',
    message: 'state the return type',
  },
];

/** Where a secret may leave its wrapping: ARCHITECTURE.md says what for. */
const REVEALING = [
  'noded/instances/identity/assume-role.ts',
  'noded/instances/identity/exchange-google.ts',
  'noded/netboot/params.ts',
  'noded/cluster/migration/migrate-instance.ts',
  'noded/content/downloads/transfer/ftp-source.ts',
  'noded/content/downloads/transfer/http-source.ts',
  'noded/provision/install/install-run.ts',
  'noded/instances/parameters/os-parameters.ts',
  'noded/net/relay/credential.ts',
  'metad/channel/former-values.ts',
  'metad/control/control-app.ts',
  'metad/dialects/ganeti.ts',
  'metad/dialects/run-list-leaves.ts',
  'metad/ganeti/ganeti-files.ts',
  'metad/http/view-mask.ts',
];

/**
 * `table[key]` and `key in table` also find what every object inherits, and an assignment to
 * `__proto__` is lost: keys come from operators and guests.
 */
const ownKeys = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      member: 'use ownValue or setOwn of #shared/json/own-value.ts, or a Map',
      in: 'use Object.hasOwn',
    },
  },
  create(context) {
    const services = context.sourceCode.parserServices;
    const checker = services.program.getTypeChecker();
    const partsOf = (type) => (type.isUnion() ? type.types : [type]);
    const isAnyString = (node) =>
      partsOf(services.getTypeAtLocation(node)).some(({ flags }) => flags & ts.TypeFlags.String);
    const isTable = (node) =>
      partsOf(checker.getNonNullableType(services.getTypeAtLocation(node))).some((type) =>
        type.getStringIndexType(),
      );
    return {
      'MemberExpression[computed=true]'({ object, property, parent }) {
        // Only own properties can be deleted.
        if (parent.type === 'UnaryExpression' && parent.operator === 'delete') return;
        if (isAnyString(property) && isTable(object))
          context.report({ node: property, messageId: 'member' });
      },
      'BinaryExpression[operator="in"]'({ left }) {
        if (left.type !== 'PrivateIdentifier' && isAnyString(left))
          context.report({ node: left, messageId: 'in' });
      },
    };
  },
};

export default tseslint.config(
  {
    ignores: ['node_modules/', 'fixtures/', 'dist/', '.dependency-cruiser.cjs', 'client/schema.ts'],
  },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/require-await': 'off',
      // node:test registers tests; its promise is the runner's business.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            {
              from: 'package',
              package: 'node:test',
              name: [
                'test',
                'it',
                'describe',
                'suite',
                'before',
                'after',
                'beforeEach',
                'afterEach',
              ],
            },
          ],
        },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      // A promise that is returned without await outlives the "using", "finally" or "catch" around
      // it.
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      'preserve-caught-error': 'error',
      'no-console': 'error',
      // Compiled without a word where a function of ours with that name is not imported.
      'no-restricted-globals': ['error', 'escape', 'unescape'],
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true } }],
      'no-restricted-syntax': ['error', ...refusedSyntax],
      complexity: ['warn', 15],
      // As wide as the code, which is Prettier's.
      'max-len': [
        'error',
        { code: 10_000, comments: 100, ignorePattern: 'eslint-|prettier-ignore' },
      ],
      'max-lines': ['warn', { max: 300, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    files: ['{metad,noded,appliance,cluster-cli,shared}/**/*.ts'],
    ignores: ['shared/json/own-value.ts'],
    plugins: { gnt: { rules: { 'own-keys': ownKeys } } },
    rules: { 'gnt/own-keys': 'error' },
  },
  {
    // Texts of guests and users become text nodes, never markup or code.
    files: ['web/**/*.{ts,tsx}'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...refusedSyntax,
        ...untypedResults,
        {
          selector: 'JSXAttribute[name.name="dangerouslySetInnerHTML"]',
          message: 'give the text as a child',
        },
        {
          selector:
            'MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML|srcdoc)$/]',
          message: 'markup from text runs the scripts in it',
        },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    ignores: ['test/lab/fast-check.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: 'fast-check',
          message: 'import it from test/lab/fast-check.ts, which sets its seed',
        },
      ],
    },
  },
  {
    files: ['{metad,noded,appliance,cluster-cli,shared,scripts}/**/*.ts'],
    ignores: REVEALING,
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: '#shared/secret/secret.ts',
          importNames: ['reveal'],
          message: 'where secrets are revealed is a list in ARCHITECTURE.md',
        },
      ],
    },
  },
  {
    // Nearly every text here is somebody else's. An expression whose time grows faster than the
    // text stops the daemon for seconds.
    files: ['{metad,noded,appliance,cluster-cli,shared}/**/*.ts'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential' }],
    },
  },
  {
    files: [
      'metad/**/*.ts',
      'noded/**/*.ts',
      'appliance/**/*.ts',
      'cluster-cli/**/*.ts',
      'shared/**/*.ts',
    ],
    // One that is run without any right is a program as well.
    ignores: ['**/main.ts', '**/main-*.ts', 'noded/content/catalogue/read-catalogue.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...refusedSyntax,
        ...untypedResults,
        {
          selector:
            "MemberExpression[object.type='MemberExpression'][object.property.name='details']",
          message:
            'details are told, not asked: what code branches on is a field of an error class',
        },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'read the environment in main.ts only' },
        { object: 'process', property: 'argv', message: 'read argv in main.ts only' },
      ],
    },
  },
);
