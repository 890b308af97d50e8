import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { extractVmlinux } from '../../../appliance/image/vmlinux.ts';

let workDir = '';
before(() => {
  workDir = mkdtempSync(join(tmpdir(), 'gnt-vmlinux-'));
});
after(() => rmSync(workDir, { recursive: true }));

const PVH_NOTE = Buffer.from([4, 0, 0, 0, 8, 0, 0, 0, 18, 0, 0, 0, 0x58, 0x65, 0x6e, 0]);
const ELF = Buffer.from('\x7fELF', 'latin1');
const kernel = Buffer.concat([ELF, PVH_NOTE, Buffer.alloc(70_000, 'kernel')]);
const SETUP_SECTORS = 4;

/**
 * Makes a file like the kernel's build: a boot sector, set-up code, the payload, and more behind
 * it.
 */
function bzImageOf(payload: Buffer): Buffer {
  const setup = Buffer.alloc((SETUP_SECTORS + 1) * 512);
  setup[0x1f1] = SETUP_SECTORS;
  setup.write('HdrS', 0x202, 'latin1');
  const loader = Buffer.alloc(100, 'l');
  setup.writeUInt32LE(loader.length, 0x248);
  setup.writeUInt32LE(payload.length, 0x24c);
  return Buffer.concat([setup, loader, payload, Buffer.alloc(300, 'e')]);
}

/** Compresses as `make bzImage`: LZ4's legacy frame, and the size. */
function compressed(content: Buffer, saidSize = content.length): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(saidSize);
  return Buffer.concat([execFileSync('lz4', ['-l', '-9', '-c'], { input: content }), size]);
}

test('the kernel in a bzImage is extracted unchanged, without temporary files', async () => {
  assert.deepEqual(await extractVmlinux(bzImageOf(compressed(kernel)), workDir), kernel);
  assert.deepEqual(readdirSync(workDir), []);
});

test('a kernel that QEMU cannot start directly is not extracted', async () => {
  const others: Readonly<Record<string, Buffer>> = {
    'no note for PVH': bzImageOf(compressed(Buffer.concat([ELF, Buffer.alloc(9000, 'k')]))),
    'no ELF file': bzImageOf(compressed(Buffer.concat([PVH_NOTE, Buffer.alloc(9000, 'k')]))),
    'another compression': bzImageOf(Buffer.alloc(9000, 'z')),
    'no bzImage': Buffer.alloc(9000, 'n'),
    nothing: Buffer.alloc(0),
  };
  for (const [what, bytes] of Object.entries(others))
    assert.equal(await extractVmlinux(bytes, workDir), null, what);
});

test('a damaged kernel is an error', async () => {
  const payload = compressed(kernel);
  const cut = Buffer.concat([payload.subarray(0, 200), payload.subarray(-4)]);
  await assert.rejects(extractVmlinux(bzImageOf(cut), workDir), /lz4/);
  const longer = compressed(kernel, kernel.length + 1);
  await assert.rejects(extractVmlinux(bzImageOf(longer), workDir), /shorter than its header says/);
});
