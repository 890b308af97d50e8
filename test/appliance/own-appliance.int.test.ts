import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type InstallEvent, installEventBatch } from '#shared/contract/install-event.ts';
import { type InstallPlan, installPlan } from '#shared/contract/plan.ts';
import { run } from '#shared/process/run.ts';
import { AgentWord } from '../../noded/provision/appliance/agent-word.ts';
import {
  findMissingStage,
  listRequiredStages,
} from '../../noded/provision/appliance/required-stages.ts';
import { jsonLeaf } from '../../metad/view/leaf.ts';
import { readOwnDocument } from './support/own-document.ts';
import { isFilledWith } from '../lab/is-filled.ts';

/*
 * The `init` of the document, run by a real busybox on this host. Its disks are files, and commands
 * that would change the host (mounts, network, power) do nothing.
 */
const top = await mkdtemp(join(tmpdir(), 'gnt-own-'));
after(() => rm(top, { recursive: true }));
const document = await readOwnDocument();
let count = 0;

const DISK_BYTES = 64 * 1024;
const image = randomBytes(10 * 512);
image.writeUInt16LE(0xaa55, 510);

const plan = (changes: object = {}): InstallPlan =>
  installPlan.parse({
    ...{ version: 1, installId: '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f', instance: 'a.example.com' },
    disks: [{ serial: 'disk0', sizeBytes: DISK_BYTES }],
    image: { serial: 'image', fileSizeBytes: image.length, grow: false, isDiskBlank: true },
    ...{ scripts: null, personalization: null },
    ...{ hooks: { points: ['install.pre'], hasDocuments: false } },
    ...changes,
  });

const STUBS = `
for each in mount modprobe ip udhcpc sync poweroff; do eval "$each() { :; }"; done
wget() {
  for last in "$@"; do :; done
  case $last in
    */plan.json) cat "$LAB/plan.json" ;;
    */install/events) printf '%s\\n' "$7" >>"$LAB/events" ;;
    *) return 1 ;;
  esac
}
`;

interface Outcome {
  /** The events that noded accepts. */
  readonly events: readonly InstallEvent[];
  readonly disk: Buffer;
}

async function install(
  given: InstallPlan,
  content: { readonly image?: Buffer; readonly disk?: Buffer } = {},
): Promise<Outcome> {
  count += 1;
  const lab = join(top, String(count));
  const disks = { vda: ['image', content.image ?? image], vdb: ['disk0', content.disk] } as const;
  await mkdir(join(lab, 'dev'), { recursive: true });
  for (const [device, [serial, bytes = Buffer.alloc(DISK_BYTES)]] of Object.entries(disks)) {
    const block = join(lab, 'block', device);
    await mkdir(block, { recursive: true });
    await writeFile(join(block, 'serial'), serial);
    await writeFile(join(block, 'size'), `${bytes.length / 512}\n`);
    await writeFile(join(lab, 'dev', device), bytes);
  }
  const leaf = jsonLeaf(given);
  assert.ok('body' in leaf);
  await writeFile(join(lab, 'plan.json'), leaf.body);
  let init = document.get('init') ?? '';
  for (const [real, ours] of [
    ['/bin/busybox --install -s /bin\n', STUBS],
    ['export PATH=/bin\n', ''],
    ['/proc/sys/vm/drop_caches', '/dev/null'],
    ['/dev/${found##*/}', `${lab}/dev/\${found##*/}`],
    ['/sys/block/vd*', `${lab}/block/vd*`],
    ['"/sys/block/${1##*/}/size"', `"${lab}/block/\${1##*/}/size"`],
    // A device keeps its size; a file would be truncated.
    ['cat /dev/zero >"$target"', `head -c ${DISK_BYTES} /dev/zero >"$target"`],
    ['"$image" >"$target"', '"$image" 1<>"$target"'],
  ] as const) {
    assert.ok(init.includes(real), real);
    init = init.replace(real, () => ours);
  }
  await writeFile(join(lab, 'init'), init);
  // Ignores its status, since the machine powers off.
  await run('sh', ['-c', 'busybox sh "$LAB/init" || :'], { env: { LAB: lab } });
  const word = new AgentWord();
  const batches = (await readFile(join(lab, 'events'), 'utf8')).trim().split('\n');
  const events = batches
    .flatMap((line) => installEventBatch.parse(JSON.parse(line)))
    .map((report) => word.take(report));
  assert.equal(word.forged + word.lost, 0);
  // Events that noded rejects are null.
  return {
    events: events.filter((event) => event !== null),
    disk: await readFile(join(lab, 'dev/vdb')),
  };
}

test('the events of a shell appliance are signed and complete, and the image is on the disk', async () => {
  const given = plan();
  const { events, disk } = await install(given);
  assert.equal(events[0]?.type, 'agent-started');
  const finished = events.flatMap((event) => (event.type === 'stage-finished' ? event.stage : []));
  assert.equal(findMissingStage(listRequiredStages(given), finished), null);
  const last = events.at(-1);
  assert.ok(last?.type === 'result' && last.outcome.status === 'success');
  assert.ok(disk.subarray(0, image.length).equals(image));
  assert.ok(isFilledWith(0, disk.subarray(image.length)));
});

test('the rest of a disk that is not blank is zeroed', async () => {
  const { isDiskBlank, ...other } = plan().image ?? {};
  assert.equal(isDiskBlank, true);
  const { disk } = await install(plan({ image: other }), { disk: Buffer.alloc(DISK_BYTES, 0x41) });
  assert.ok(isFilledWith(0, disk.subarray(image.length)));
});

test('a look finishes its stages and writes nothing to the disk', async () => {
  const given = plan({ isLook: true });
  const { events, disk } = await install(given);
  const finished = events.flatMap((event) => (event.type === 'stage-finished' ? event.stage : []));
  assert.equal(findMissingStage(listRequiredStages(given), finished), null);
  assert.ok(isFilledWith(0, disk));
});

const scripts = {
  script: 'create',
  path: 'untrusted/create',
  // Values that could be mistaken for parts of another plan.
  environment: { A: '"scripts":null', B: '"personalization":null,"hasDocuments":false' },
};
const { image: usual } = plan();
for (const [what, changes, code, message] of [
  ['OS scripts', { scripts }, 'INTERNAL', /OS scripts/],
  ['a package', { personalization: { format: 'tar.gz' } }, 'INTERNAL', /personalization/],
  ['hooks', { hooks: { points: [], hasDocuments: true } }, 'INTERNAL', /hooks/],
  ['growing', { image: { ...usual, grow: true } }, 'INTERNAL', /growing/],
  ['another format', { image: { ...usual, format: 'qcow2' } }, 'INTERNAL', /other formats/],
  ['no image', { image: null }, 'INTERNAL', /without an image/],
  ['a short image', { image: { ...usual, fileSizeBytes: 1e6 } }, 'DISK_MISSING', /image is not/],
] as const) {
  test(`${what}: refused with the reason, and nothing is written`, async () => {
    const { events, disk } = await install(plan(changes));
    const last = events.at(-1);
    assert.ok(last?.type === 'result' && last.outcome.status === 'failure');
    assert.equal(last.outcome.code, code);
    assert.match(last.outcome.message, message);
    assert.ok(isFilledWith(0, disk));
  });
}

test('an image without a boot sector is refused, unless the operator sets the format raw', async () => {
  const bare = Buffer.alloc(image.length, 0x42);
  const { events } = await install(plan(), { image: bare });
  const last = events.at(-1);
  assert.ok(last?.type === 'result' && last.outcome.status === 'failure');
  assert.equal(last.outcome.code, 'IMAGE_INVALID');
  const said = await install(plan({ image: { ...usual, format: 'raw' } }), { image: bare });
  assert.ok(said.disk.subarray(0, bare.length).equals(bare));
});
