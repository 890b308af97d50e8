import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { composeUserData } from '../../../cluster-cli/values/user-data.ts';
import { renderNocloud } from '../../../metad/dialects/nocloud.ts';
import type { Leaf } from '../../../metad/view/leaf.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { SEED_FILES, type SeedDocuments, writeSeedDisk } from '../../../noded/storage/seed-disk.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';

/*
 * How a Kairos guest reads our seed disk, reimplemented: yip 1.24's provider `cdrom`
 * (pkg/plugins/datasourceProviders/cdrom_shared.go, provider_cdrom.go; pkg/plugins/datasource.go)
 * on go-diskfs 1.9.3 (disk/disk.go: GetFilesystem; filesystem/fat32, fat16, fat12: Read, Label).
 * Facts from their sources, in our own words.
 */

/** Layout of a root directory's entry: name, attributes, first cluster, size. */
const ENTRY_BYTES = 32;
const VOLUME_LABEL = 0x08;
const LONG_NAME = 0x0f;

interface Found {
  readonly kind: 'fat12' | 'fat16';
  readonly label: string;
}

/**
 * Returns the file system that go-diskfs detects on the whole device, by trying its readers in
 * turn.
 */
function probeFat(disk: Buffer): Found | null {
  assert.ok(!isFat32(disk), 'its FAT32 reader takes it, and finds no label');
  const [sectorBytes, reserved] = [disk.readUInt16LE(11), disk.readUInt16LE(14)];
  const [clusterSectors = 0, fats = 0] = [disk[13], disk[16]];
  const rootEntries = disk.readUInt16LE(17);
  const sectorsPerFat = disk.readUInt16LE(22);
  if (rootEntries === 0 || clusterSectors === 0) return null;
  const sectors = disk.readUInt16LE(19) || disk.readUInt32LE(32);
  const rootSectors = Math.ceil((rootEntries * ENTRY_BYTES) / sectorBytes);
  const dataSectors = sectors - reserved - fats * sectorsPerFat - rootSectors;
  const clusters = Math.floor(dataSectors / clusterSectors);
  if (clusters >= 65_525) return null;
  // Both readers assume two tables.
  const root = (reserved + 2 * sectorsPerFat) * sectorBytes;
  return { kind: clusters < 4085 ? 'fat12' : 'fat16', label: findLabel(disk, root, rootEntries) };
}

/**
 * Looks for the signature of FAT32's information sector. FAT12 and FAT16 have text in place of its
 * number.
 */
function isFat32(disk: Buffer): boolean {
  const at = disk.readUInt16LE(48) * disk.readUInt16LE(11);
  return at + 512 <= disk.length && disk.subarray(at, at + 4).toString('latin1') === 'RRaA';
}

function findLabel(disk: Buffer, root: number, entries: number): string {
  for (let at = root; at < root + entries * ENTRY_BYTES; at += ENTRY_BYTES) {
    const attributes = disk[at + 11] ?? 0;
    const isLabel = attributes !== LONG_NAME && (attributes & VOLUME_LABEL) !== 0;
    if (disk[at] !== 0 && disk[at] !== 0xe5 && isLabel)
      return disk.toString('latin1', at, at + 11).trim();
  }
  return '';
}

/**
 * Returns the user data that yip reads from a disk, or null if it continues with the network. The
 * first existing file counts; an empty one means none.
 */
function chooseUserData(label: string, files: Partial<Record<string, Buffer>>): string | null {
  if (label !== 'CIDATA' && label !== 'cidata') return null;
  const found = ['user-data', 'config']
    .map((name) => files[name])
    .find((file) => file !== undefined);
  if (found === undefined || found.length === 0) return null;
  return decodeMultipart(found.toString());
}

/** Returns the first part of exactly this type, if the boundary is exactly this word. */
function decodeMultipart(text: string): string {
  for (const part of text.split(/^--MIMEBOUNDARY\r?\n/m).slice(1)) {
    const [head = '', ...rest] = part.split(/\r?\n\r?\n/);
    if (!/^content-type: text\/cloud-config$/im.test(head.replaceAll('\r', ''))) continue;
    return rest.join('\n\n').replace(/\r?\n--MIMEBOUNDARY(--)?[^]*$/, '');
  }
  return text;
}

const directory = mkdtempSync(join(tmpdir(), 'gnt-yip-'));
after(() => rmSync(directory, { recursive: true }));

function bodyOf(leaf: Leaf | undefined): Buffer {
  assert.equal(leaf?.kind, 'fixed');
  return leaf.body;
}

const encode = (text: string | null): string | null =>
  text === null ? null : Buffer.from(text).toString('base64');

async function askYip(
  userData: string | null,
  vendorData: string | null = null,
): Promise<{ found: Found | null; chosen: string | null }> {
  const leaves = renderNocloud(
    parseView(exampleView({ userData: encode(userData), vendorData: encode(vendorData) })),
  );
  const files = Object.fromEntries(SEED_FILES.map((name) => [name, bodyOf(leaves.get(name))]));
  const path = join(directory, 'seed.img');
  await writeSeedDisk(path, files as SeedDocuments); // Every name exists.
  const found = probeFat(readFileSync(path));
  return { found, chosen: chooseUserData(found?.label ?? '', files) };
}

const YIP = '#cloud-config\nstages:\n  boot:\n  - hostname: kairos\n';

test("a Kairos guest reads the user's document on the seed disk, and not a way to it", async () => {
  const { found, chosen } = await askYip(YIP);
  assert.deepEqual(found, { kind: 'fat12', label: 'CIDATA' });
  assert.equal(chosen, YIP);
  // yip runs a document or nothing.
  assert.deepEqual(parse(chosen), { stages: { boot: [{ hostname: 'kairos' }] } });
});

test('of a multi-part document it reads the cloud-config, whole', async () => {
  const parts = ['#!/bin/sh\ntrue\n', YIP].map((text, index) => ({
    name: String(index),
    bytes: Buffer.from(text),
  }));
  const composed = composeUserData(parts)?.toString() ?? '';
  const { chosen } = await askYip(composed);
  assert.equal(chosen?.trimEnd(), YIP.trimEnd());
});

test('without user data it goes on to ask the network, as if there were no disk', async () => {
  const { found, chosen } = await askYip(null);
  assert.equal(found?.label, 'CIDATA');
  assert.equal(chosen, null);
});

test('documents that need a larger disk are found on it as well', async () => {
  const large = `${YIP}# ${'x'.repeat(1_000_000)}\n`;
  const { found, chosen } = await askYip(large, large);
  assert.equal(found?.label, 'CIDATA');
  assert.equal(chosen, large);
});

test('what the seed disk held before, an include, is taken and is no document: the replay tells them apart', async () => {
  const { chosen } = await askYip('#include\nhttp://169.254.169.254/nocloud/user-data\n');
  assert.equal(typeof parse(chosen ?? ''), 'string');
});
