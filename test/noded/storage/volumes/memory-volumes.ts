import type {
  Volume,
  VolumeGroup,
  VolumeSystem,
} from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import { recordCommands } from './recorded-commands.ts';
import { THICK } from './sample-volumes.ts';

/** Volumes in memory, and the changes that were asked for. No volume has a device. */
export interface MemoryVolumes {
  readonly system: VolumeSystem;
  readonly calls: string[];
  /** Name, and size in bytes, of each volume. */
  readonly list: () => readonly string[];
  /** Makes the change that begins with these words fail. */
  readonly failAt: (call: string) => void;
}

/** @param given fields of each volume that is there; groups: xenvg */
export function createMemoryVolumes(
  given: readonly (Pick<Volume, 'name'> & Partial<Volume>)[],
  groups: readonly VolumeGroup[],
): MemoryVolumes {
  let volumes: readonly Volume[] = given.map((one) => ({
    ...{ ...THICK, group: 'xenvg', groupUuid: 'g', sizeBytes: 8, tags: [], origin: '' },
    ...{ isActive: true, ...one },
  }));
  const calls: string[] = [];
  let failing: string | undefined;
  const call = (...words: readonly unknown[]): void => {
    const text = words.join(' ');
    calls.push(text);
    if (failing !== undefined && text.startsWith(failing)) throw new Error(`failed: ${text}`);
  };
  const change = (name: string, changes: Partial<Volume>): void => {
    volumes = volumes.map((one) => (one.name === name ? { ...one, ...changes } : one));
  };
  const system: VolumeSystem = {
    ...createLvm(recordCommands().commands),
    pathOf: ({ name }) => `/nonexistent/${name}`,
    isThere: async ({ name }) => volumes.some((one) => one.name === name),
    listGroups: async () => groups,
    listVolumes: async () => volumes,
    isScanned: async () => false,
    create: async ({ group, name, sizeBytes, tags, pool = '' }) => {
      call('create', name, sizeBytes, tags.join(','), pool);
      const made = { ...THICK, group, groupUuid: 'g', name, sizeBytes, tags, pool };
      volumes = [...volumes, { ...made, origin: '', isActive: true }];
    },
    clone: async ({ name: origin }, { name, tags, isActive }) => {
      call('clone', origin, name, isActive);
      const from = volumes.find((one) => one.name === origin);
      if (from !== undefined) volumes = [...volumes, { ...from, name, tags, isActive, origin }];
    },
    extend: async ({ name }, sizeBytes) => {
      call('extend', name, sizeBytes);
      change(name, { sizeBytes });
    },
    rename: async ({ name }, to) => {
      call('rename', name, to);
      change(name, { name: to });
    },
    remove: async ({ name }) => {
      call('remove', name);
      volumes = volumes.filter((one) => one.name !== name);
    },
    activate: async ({ name }) => {
      call('activate', name);
      change(name, { isActive: true });
    },
    tag: async ({ name }, what) => {
      call('tag', name, JSON.stringify(what));
      const { tags = [] } = volumes.find((one) => one.name === name) ?? {};
      const left = 'add' in what ? [...tags, what.add] : tags.filter((tag) => tag !== what.remove);
      change(name, { tags: left });
    },
    zero: async ({ name }, fromBytes, toBytes) => call('zero', name, fromBytes, toBytes),
  };
  return {
    system,
    calls,
    list: () => volumes.map(({ name, sizeBytes }) => `${name} ${sizeBytes}`),
    failAt: (text) => {
      failing = text;
    },
  };
}
