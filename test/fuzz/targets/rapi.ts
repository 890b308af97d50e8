import assert from 'node:assert/strict';
import { opcode } from '#shared/contract/opcode.ts';
import {
  parseCreate,
  parseModify,
  parseReboot,
  parseReinstall,
} from '../../../noded/api/rapi/instance-requests.ts';
import { parseFilter } from '../../../noded/api/rapi/query-filter.ts';
import { RapiFailure } from '../../../noded/api/rapi/rapi-failure.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate, mutateJson, printJson } from '../mutate.ts';
import { assertRefusal, openPure, type Target } from '../target.ts';

const CREATE = {
  ...{ __version__: 1, mode: 'create', name: 'web1', os: 'debian+bookworm', disk_template: 'file' },
  disks: [{ size: 1024, mode: 'rw', name: 'root' }],
  nics: [{ bridge: 'br1', mac: 'generate', ip: null }],
  beparams: { maxmem: 256, minmem: 128, vcpus: 2, auto_balance: true },
  hvparams: { kernel_path: '/boot/vmlinuz', kernel_args: 'ro' },
  osparams: { 'os-image': 'https://example.com/debian.qcow2', size: 3 },
  osparams_secret: { password: 'sesame' },
  ...{
    user_data: '#cloud-config\n',
    instance_communication: true,
    tags: ['a'],
    pnode: null,
    start: true,
  },
  ...{
    personalization_package: 'http://example.com/x.tar.gz',
    metadata: { role: 'db' },
    dialects: ['ec2'],
  },
};
const FILTER = [
  '|',
  ['&', ['=', 'name', 'web1'], ['?', 'oper_state']],
  ['!', ['=[]', 'tags', 'a']],
  ['<', 'memory', 5],
];
const FIELDS = new Set(['name', 'oper_state', 'tags', 'memory']);
const ITEM = { name: 'web1', oper_state: true, tags: ['a'], memory: 4 };
const OPERATORS = new Set(['&', '|', '!', '?', '=', '==', '!=', '=[]', '<', '<=', '>', '>=']);

/** Path and body of requests. An input has each on a line. */
const seeds: readonly (readonly [string, unknown])[] = [
  ['create', CREATE],
  [
    'reinstall',
    {
      os: 'debian',
      osparams: { a: null },
      osparams_secret: { password: 'x' },
      shutdown_timeout: 5,
    },
  ],
  [
    'modify',
    { custom_beparams: { memory: 64 }, nics: [], osparams: { a: null }, hvparams: { acpi: true } },
  ],
  ['reboot', { shutdown_timeout: 1, reason: [['x', 'y', 1]] }],
  ['filter', FILTER],
];

interface Parsers {
  readonly create: typeof parseCreate;
  readonly filter: typeof parseFilter;
}

/** Checks bodies of the remote API: they give a valid opcode, or a refusal with a 4xx status. */
export function rapiTarget(
  parsers: Parsers = { create: parseCreate, filter: parseFilter },
): Target {
  return { name: 'rapi', generate, open: () => openPure((input) => check(input, parsers)) };
}

function generate(random: SeededRandom): Buffer {
  const [name, body] = random.pick(seeds);
  const text = Buffer.from(printJson(mutateJson(body, random)));
  return Buffer.concat([
    Buffer.from(`${name}\n`),
    random.below(5) === 0 ? mutate(text, random) : text,
  ]);
}

function check(input: Buffer, parsers: Parsers): void {
  const [name = '', ...lines] = input.toString().split('\n');
  let body: unknown;
  try {
    body = JSON.parse(lines.join('\n'));
  } catch {
    return; // refused before these parsers
  }
  try {
    handle(name, body, parsers);
  } catch (error) {
    assert.doesNotMatch(
      String(error),
      /native code/,
      "a word of an object's own was taken for a name",
    );
    if (!(error instanceof RapiFailure)) return assertRefusal(error, ['VALIDATION']);
    assert.ok(error.status >= 400 && error.status < 500 && error.message.length < 1_000);
  }
}

function handle(name: string, body: unknown, { create, filter }: Parsers): void {
  switch (name) {
    case 'create':
      return assertOpcode(create(body));
    case 'reinstall':
      return assertOpcode(parseReinstall('web1', body));
    case 'modify':
      return assertOpcode(parseModify('web1', body));
    case 'reboot':
      return assertOpcode(parseReboot('web1', null, body));
    default: {
      const matches = filter(body, FIELDS);
      assert.ok(isFilter(body), 'a filter that is none was taken');
      assert.equal(typeof matches(ITEM), 'boolean');
    }
  }
}

/** Checks that a draft is refused by the opcode's schema, or survives storage. */
function assertOpcode(draft: unknown): void {
  const parsed = opcode.safeParse(draft);
  if (!parsed.success) return;
  const text = JSON.stringify(parsed.data);
  // A second parse costs as much as the rest of the case, so only some inputs get it.
  if (text.length % 8 !== 0) return;
  assert.equal(
    JSON.stringify(opcode.parse(JSON.parse(text))),
    text,
    'it is another when it is kept',
  );
}

function isFilter(filter: unknown): boolean {
  if (!Array.isArray(filter)) return filter === null;
  const [operator, ...operands] = filter as unknown[];
  if (operator === '&' || operator === '|' || operator === '!') return operands.every(isFilter);
  return typeof operator === 'string' && OPERATORS.has(operator);
}
