import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { uploadIsoHandler } from '../../../noded/operations/upload-iso.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab } from './operation-lab.ts';

const URL = 'https://example.com/debian.iso';
const SHA256 = 'a'.repeat(64);

interface Case {
  readonly isoFile?: string;
  readonly isoUrl?: string;
  readonly sha256?: string;
  readonly source?: string;
  /** Whether the node has the content under another name already. */
  readonly isOpen?: boolean;
  readonly freeBytes?: number;
  readonly sizeBytes?: number;
  readonly open?: () => Promise<unknown>;
}

function upload(given: Case = {}) {
  const { isoFile = 'debian.iso', isoUrl = URL, sha256 = '', source } = given;
  const asked: unknown[] = [];
  const amd64 = { IsoFile: isoFile, IsoUrl: isoUrl, Sha256: sha256 };
  const lab = createOperationLab(instanceRecord(), {
    clusters: { loadBootEnv: async () => ({ OS: { SupportedArchitectures: { amd64 } } }) },
    images: {
      fetch: async (from: string, { checksum }: { readonly checksum?: string }) => {
        asked.push(from, checksum);
        const { sizeBytes = MIB } = given;
        return { sha256: SHA256, sizeBytes, release: () => void lab.steps.push('release') };
      },
    },
    archives: {
      name: async () => given.isOpen === true,
      create: async (_: string, maxBytes: number) => {
        asked.push(maxBytes / MIB);
        return {
          keep: async () => 42,
          [Symbol.asyncDispose]: async () => void lab.steps.push('target.dispose'),
        };
      },
    },
    disks: { freeBytes: async () => given.freeBytes ?? 100 * GIB },
    installer: {
      enterRoom: async () => ({ [Symbol.dispose]: () => void lab.steps.push('room.leave') }),
      openArchive: given.open ?? (async () => ({})),
    },
  });
  const input = { opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'debian', source } as const;
  return { ...lab, asked, ended: lab.run(uploadIsoHandler, input) };
}

test('an archive is fetched, opened in an appliance and kept under its name', async () => {
  const { ended, steps, asked } = upload();
  assert.deepEqual(await ended, { isoFile: 'debian.iso', sha256: SHA256, files: 42 });
  assert.deepEqual(steps, [
    ...['images.check', 'execute', 'images.fetch', 'archives.name', 'archives.create'],
    ...['installer.enterRoom', 'installer.openArchive', 'room.leave', 'target.dispose', 'release'],
  ]);
  // Twenty times the archive, and the index.
  assert.deepEqual(asked, [URL, undefined, 20 + 128]);
});

test('the digest of a BootEnv is demanded, and a given file comes before its URL', async () => {
  const { ended, asked } = upload({ sha256: SHA256, source: '/srv/debian.iso' });
  await ended;
  assert.deepEqual(asked.slice(0, 2), ['/srv/debian.iso', `sha256:${SHA256}`]);
});

test('content that is open already gets the name, and no appliance is booted', async () => {
  const { ended, steps } = upload({ isOpen: true });
  assert.deepEqual(await ended, { isoFile: 'debian.iso', sha256: SHA256 });
  assert.deepEqual(steps.slice(-2), ['archives.name', 'release']);
});

test('an archive that cannot be opened leaves neither room nor files taken', async () => {
  const { ended, steps } = upload({ open: () => Promise.reject(new Error('the appliance ended')) });
  await assert.rejects(ended, { message: 'the appliance ended' });
  assert.deepEqual(steps.slice(-3), ['room.leave', 'target.dispose', 'release']);
});

for (const [what, given] of [
  ['without an IsoFile', { isoFile: '' }],
  ['without an IsoUrl or a given file', { isoUrl: '' }],
] as const) {
  test(`the archive of a BootEnv ${what} is refused before it is fetched`, async () => {
    const { ended, steps } = upload(given);
    await assert.rejects(ended, { code: 'BOOTENV_NO_SOURCE' });
    assert.deepEqual(steps, []);
  });
}

for (const [what, sizeBytes, freeBytes, maxMib] of [
  // One GiB stays free for the guests.
  ['what is free, in whole MiB', GIB, 3 * GIB + 5, 2048],
  ['64 GiB', 10 * GIB, 500 * GIB, 64 * 1024],
  ['the archive and its index', GIB, 2 * GIB + 128 * MIB, 1024 + 128],
] as const) {
  test(`the files of an archive take at most ${what}`, async () => {
    const { ended, asked } = upload({ sizeBytes, freeBytes });
    await ended;
    assert.equal(asked.at(-1), maxMib);
  });
}

test('an archive that its files would not fit beside is refused', async () => {
  const { ended } = upload({ sizeBytes: GIB, freeBytes: 2 * GIB + 127 * MIB });
  await assert.rejects(ended, { code: 'DISK_SPACE' });
});
