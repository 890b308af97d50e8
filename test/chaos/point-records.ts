import { createHash } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootEnv } from '#shared/contract/boot-env.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { OS, type PointOperation, type PointScene } from './point-scene.ts';

/** Named objects: networks, boot environments, their archives, images, catalogues. */
const NETWORK = 'lan';
const BOOT_ENV = 'points';
const KEPT_ISO = 'kept.archive';
const ISO = 'points.archive';
const IMAGE = 'points/image';
const CATALOGUE = 'points';
/** An opened archive, as the appliance leaves it: one file with its index. */
const ARCHIVE = { data: 'kernel', index: '0 6 linux\n' } as const;

interface Files {
  readonly archive: string;
  readonly image: string;
  readonly catalogue: string;
}

/** Places an opened archive as an appliance would, before the node starts. */
export async function writeContents({ paths }: Lab): Promise<Files> {
  const folder = join(paths.root, 'contents');
  const files: Files = {
    archive: join(folder, 'archive'),
    image: join(folder, 'image.raw'),
    catalogue: join(folder, 'catalogue.json'),
  };
  await mkdir(folder);
  await writeFile(files.archive, 'archive');
  await writeFile(files.image, Buffer.alloc(65_536, 1));
  const checksum = `sha256:${'a'.repeat(64)}`;
  const images = [{ name: 'points/one', url: 'https://example.com/one.img', checksum }];
  await writeFile(files.catalogue, JSON.stringify({ images }));
  const sha256 = createHash('sha256').update('archive').digest('hex');
  const dir = paths.bootArchivesDir;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  for (const part of ['data', 'index'] as const)
    await writeFile(join(dir, `${sha256}.${part}`), ARCHIVE[part]);
  await writeFile(join(dir, 'names.json'), JSON.stringify({ [KEPT_ISO]: sha256 }));
  return files;
}

/** A named object. After an interruption it may exist or not, and the next attempt succeeds. */
interface Named {
  readonly isThere: () => Promise<boolean>;
  readonly make: { readonly path?: string; readonly opcode: () => object };
  readonly take: { readonly path?: string; readonly opcode: () => object };
}

export function createRecordOperations(scene: PointScene, files: Files): readonly PointOperation[] {
  const has = async (list: string, name: string, field = 'name'): Promise<boolean> =>
    (await scene.list(list)).some((one) => one[field] === name);
  const bootEnvOf = (Name: string, amd64: object): object =>
    bootEnv.parse({ Name, Loaders: {}, OS: { Name: 'x', SupportedArchitectures: { amd64 } } });
  const boot = bootEnvOf(BOOT_ENV, { Kernel: 'linux', IsoFile: 'none.archive' });
  const openable = bootEnvOf('openable', { Kernel: 'linux', IsoFile: ISO });
  const uploaded = async (): Promise<void> => {
    if (!(await has('/v1/bootenvs', 'openable')))
      await scene.must({ opcode: 'BOOTENV_SET', bootEnvs: [openable] });
  };
  return [
    ...ofNamed(scene, 'network', ['add', 'remove'], {
      isThere: () => has('/v1/networks', NETWORK),
      make: {
        opcode: () => ({
          ...{ opcode: 'NETWORK_ADD', name: NETWORK, network: '10.213.0.0/24' },
          gateway: '10.213.0.1',
        }),
      },
      take: { opcode: () => ({ opcode: 'NETWORK_REMOVE', name: NETWORK }) },
    }),
    ...ofNamed(scene, 'bootenv', ['create', 'destroy'], {
      isThere: () => has('/v1/bootenvs', BOOT_ENV),
      make: {
        opcode: () => ({ opcode: 'BOOTENV_SET', bootEnvs: [boot], params: [{ Name: 'p' }] }),
      },
      take: {
        opcode: () => ({
          opcode: 'BOOTENV_REMOVE',
          object: { kind: 'bootEnv', name: BOOT_ENV },
        }),
      },
    }),
    ...ofNamed(scene, 'image', ['import', 'remove'], {
      isThere: () => has('/v1/images', IMAGE),
      make: {
        path: '/v1/images/import',
        opcode: () => ({ name: IMAGE, path: files.image }),
      },
      take: { path: '/v1/images/remove', opcode: () => ({ name: IMAGE }) },
    }),
    ...ofNamed(scene, 'catalogue', ['add', 'remove'], {
      isThere: () => has('/v1/catalogues', CATALOGUE),
      make: {
        path: '/v1/catalogues',
        opcode: () => ({ name: CATALOGUE, source: files.catalogue }),
      },
      take: { path: '/v1/images/remove', opcode: () => ({ name: CATALOGUE }) },
    }),
    ...ofNamed(scene, 'os', ['hide', 'show'], {
      isThere: async () =>
        (await scene.list('/v1/os')).some(({ name, hidden }) => name === OS && hidden === true),
      make: { opcode: () => ({ opcode: 'OS_SET_PARAMS', name: OS, hidden: true }) },
      take: { opcode: () => ({ opcode: 'OS_SET_PARAMS', name: OS, hidden: false }) },
    }),
    ...ofNamed(scene, 'profile', ['set', 'remove'], {
      isThere: () => has('/v1/profiles', 'points'),
      make: {
        opcode: () => ({ opcode: 'PROFILE_SET_PARAMS', name: 'points', osParameters: { a: 'b' } }),
      },
      take: { opcode: () => ({ opcode: 'PROFILE_REMOVE', name: 'points' }) },
    }),
    ...openedArchives(scene, files, uploaded),
  ];
}

/** Returns the operations on an archive that is already opened, which need no appliance. */
function openedArchives(
  scene: PointScene,
  { archive }: Files,
  uploaded: () => Promise<void>,
): readonly PointOperation[] {
  const { bootArchivesDir } = scene.lab.paths;
  const isThere = async (): Promise<boolean> =>
    (await scene.list('/v1/boot-archives')).some((one) => one['isoFile'] === ISO);
  const upload = { opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'openable', source: archive };
  const destroy = { opcode: 'BOOTENV_DESTROY_ISO', isoFile: ISO };
  const unnamed = async (): Promise<void> => {
    if ((await scene.list('/v1/bootenvs')).some(({ name }) => name === 'openable'))
      await scene.must({ opcode: 'BOOTENV_REMOVE', object: { kind: 'bootEnv', name: 'openable' } });
  };
  const judge = async (isDone: boolean, wanted: boolean): Promise<readonly string[]> => {
    const names = (await scene.list('/v1/boot-archives')).map((one) => one['isoFile']);
    const opened = (await readdir(bootArchivesDir)).filter((name) => /data|index/.test(name));
    return [
      ...(isDone && (await isThere()) !== wanted ? [`its archives are ${names.join()}`] : []),
      // The other name still refers to the content.
      ...(names.includes(KEPT_ISO) && opened.length === 2 ? [] : [`opened: ${opened.join()}`]),
    ];
  };
  return [
    {
      name: 'uploadiso of opened bytes',
      prepare: async () => {
        if (await isThere()) {
          await unnamed();
          await scene.must(destroy);
        }
        await uploaded();
      },
      opcode: () => upload,
      judge: (isDone) => judge(isDone, true),
      isRepeated: true,
    },
    {
      name: 'destroyiso',
      prepare: async () => {
        if (!(await isThere())) {
          await uploaded();
          await scene.must(upload);
        }
        await unnamed();
      },
      opcode: () => destroy,
      judge: (isDone) => judge(isDone, false),
    },
  ];
}

function ofNamed(
  scene: PointScene,
  kind: string,
  [making, taking]: readonly [string, string],
  { isThere, make, take }: Named,
): readonly PointOperation[] {
  const bring = async (wanted: boolean): Promise<void> => {
    if ((await isThere()) === wanted) return;
    const { path, opcode } = wanted ? make : take;
    if (path === undefined) await scene.must(opcode());
    else await scene.mustPost(path, opcode());
  };
  const judge = async (isDone: boolean, wanted: boolean): Promise<readonly string[]> =>
    isDone && (await isThere()) !== wanted ? [`it is ${wanted ? 'gone' : 'back'}`] : [];
  return [
    {
      ...{ name: `${kind} ${making}`, ...make },
      prepare: () => bring(false),
      judge: (isDone) => judge(isDone, true),
    },
    {
      ...{ name: `${kind} ${taking}`, ...take },
      prepare: () => bring(true),
      judge: (isDone) => judge(isDone, false),
    },
  ];
}
