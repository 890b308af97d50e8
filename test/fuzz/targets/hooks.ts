import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hookStages } from '#shared/contract/primitives.ts';
import { parseHookDocument } from '../../../appliance/agent/hooks/document.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../mutate.ts';
import { assertRefusal, type Target } from '../target.ts';

const directory = join(import.meta.dirname, '../../../fixtures/yip');

/** Small documents: most of a case's time is the YAML library's, per line. */
const OWN = [
  `stages:
  before-install:
    - layout: {device: {path: /dev/vda}, expand_partition: {size: 0}, add_partitions: [{fsLabel: DATA, size: 100, filesystem: ext4}]}
`,
  `name: aliases
stages:
  after-install:
    - &step
      files: [{path: /etc/motd, content: "hello", permissions: 0644, owner: 0}]
    - <<: *step
      if: 'test -e /x'
      only_os: 'debian|ubuntu'
`,
  `stages:
  after-install:
    - commands: ['echo $PATH', "two"]
      downloads: [{url: http://example.com/x, path: /x, timeout: 5}]
`,
  `stages:
  after-install-chroot.after:
    - users: {web: {passwd: '!', groups: [adm], ssh_authorized_keys: [ssh-ed25519 AAAA x]}}
      sysctl: {net.ipv4.ip_forward: '1'}
      systemctl: {enable: [a.service], overrides: [{service: b, content: "[Service]"}]}
`,
  'stages: {install.pre: [{commands: [echo of the appliance]}]}\n',
];
const MAX_SEED_LENGTH = 200;

/** Checks hook documents: they are refused without quoting content, or give known stages. */
export function hooksTarget(parse: typeof parseHookDocument = parseHookDocument): Target {
  return { name: 'hooks', generate, open: async () => new HooksOracle(parse) };
}

/**
 * Fails on warnings of the YAML library, because they quote the document, which may contain
 * passwords.
 */
class HooksOracle {
  readonly #emitWarning = process.emitWarning.bind(process);
  readonly #warnings: unknown[] = [];
  readonly check: (input: Buffer) => void;

  constructor(parse: typeof parseHookDocument) {
    process.emitWarning = (warning: unknown) => this.#warnings.push(warning);
    this.check = (input) => {
      check(input, parse);
      assert.deepEqual(
        this.#warnings.splice(0),
        [],
        'a warning that tells what is in the document',
      );
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.emitWarning = this.#emitWarning;
  }
}

function generate(random: SeededRandom): Buffer {
  return mutate(Buffer.from(random.pick(seeds)), random);
}

const seeds = [...OWN, ...found()];

function found(): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .map((name) => readFileSync(join(directory, name), 'utf8'))
    .filter((text) => text.length <= MAX_SEED_LENGTH);
}

function check(input: Buffer, parse: typeof parseHookDocument): void {
  const document = {
    source: 'instance',
    name: '10-x.yaml',
    content: input.toString('base64'),
  } as const;
  try {
    const parsed = parse(document);
    for (const stage of parsed.stages.keys()) assert.ok(hookStages.includes(stage));
  } catch (error) {
    assertRefusal(error, ['HOOK_FAILED']);
  }
}
