import { writeFile } from 'node:fs/promises';
import {
  createExportStore,
  type ExportStore,
} from '../../../../noded/instances/backup/export-store.ts';

/**
 * Exports one disk.
 * @param dump content of its dump
 */
export async function makeExportOf(
  exports: ExportStore,
  name: string,
  dump: string,
  tags: readonly string[] = [],
): Promise<string> {
  await using unfinished = await exports.begin(name);
  const path = await unfinished.createDump(0, 4096);
  await writeFile(path, dump, { flag: 'r+' });
  await unfinished.cutDump(0, dump.length);
  return await unfinished.finish({
    name,
    node: 'node1',
    createdAtMs: 0,
    osType: 'keeper',
    beparams: { memoryMiB: 256, vcpus: 1 },
    disks: [{ name: null, sizeBytes: 1024 ** 2, dump: 'disk0.snap' }],
    nics: [],
    osParameters: {},
    osParametersPrivate: {},
    tags,
    profiles: [],
    whole: null,
  });
}

// Run as a program, it makes one export: DIRECTORY NAME CONTENT.
const [program, directory, name, content] = process.argv.slice(1);
if (program === import.meta.filename && directory && name && content)
  await makeExportOf(createExportStore(directory), name, content);
