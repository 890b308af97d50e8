import { readlink } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { createLoopLvm } from '../noded/storage/volumes/loop-lvm.ts';

/**
 * Replaces `lvm` for noded on a host without device mapper: real LVM metadata, with loop devices
 * for volumes. Supports only the commands and options that noded uses.
 */
const [, , real = '', group = '', device = '', command = '', ...rest] = process.argv;
const lvm = createLoopLvm(group, device, real);
const { values, positionals } = parseArgs({
  args: rest,
  allowPositionals: true,
  options: {
    ...{ config: { type: 'string' }, yes: { type: 'boolean' }, size: { type: 'string' } },
    ...{ name: { type: 'string' }, activate: { type: 'string' }, zero: { type: 'string' } },
    ...{ wipesignatures: { type: 'string' }, typeconfig: { type: 'string' } },
    ...{ addtag: { type: 'string', multiple: true }, deltag: { type: 'string' } },
    ...{ reportformat: { type: 'string' }, units: { type: 'string' } },
    ...{ nosuffix: { type: 'boolean' }, o: { type: 'string', short: 'o' } },
  },
});
const [first = '', second = '', third = ''] = positionals;
const named = (path: string) => ({ group, name: path.split('/')[1] ?? '' });
const sizeBytes = Number(values.size?.replace(/b$/, ''));

switch (command) {
  case 'lvmconfig':
    process.stdout.write('scan_lvs=0\n');
    break;
  case 'vgs':
  case 'lvs':
    process.stdout.write(await report());
    break;
  case 'lvcreate':
    await lvm.create({ group, name: values.name ?? '', sizeBytes, tags: values.addtag ?? [] });
    break;
  case 'lvextend':
    await lvm.extend(named(first), sizeBytes);
    break;
  case 'lvrename':
    await lvm.rename({ group, name: second }, third);
    break;
  case 'lvremove':
    await lvm.remove(named(first));
    break;
  case 'lvchange':
    if (values.activate !== undefined) await lvm.activate(named(first));
    for (const tag of values.addtag ?? []) await lvm.tag(named(first), { add: tag });
    if (values.deltag !== undefined) await lvm.tag(named(first), { remove: values.deltag });
    break;
  default:
    throw new Error(`what is ${command}?`);
}

/**
 * Prints the report. Volumes with a device count as active, because LVM cannot know the active ones
 * without device mapper.
 */
async function report(): Promise<string> {
  const text = await lvm.command(command, ...rest.filter((_, at) => !isConfig(at)));
  if (command === 'vgs') return text;
  const told = JSON.parse(text) as { report: { lv: Record<string, string>[] }[] };
  for (const { lv } of told.report)
    for (const row of lv) {
      const path = `/dev/${group}/${row['lv_name'] ?? ''}`;
      const isThere = (await readlink(path).catch(() => null)) !== null;
      row['lv_active'] = isThere ? 'active' : '';
    }
  return JSON.stringify(told);
}

function isConfig(at: number): boolean {
  return rest[at] === '--config' || rest[at - 1] === '--config';
}
