import type { ViewBootFile } from '#shared/contract/boot-view.ts';
import { bytesLeaf, lostLeaf, type Leaf } from '../view/leaf.ts';
import type { ServedView } from '../view/served-view.ts';
import { BOOT_FOLDER, bootTreePath } from './boot-paths.ts';

/** Returns the files of the boot environment, in dr-provision's layout of its file root. */
export function bootLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { boot, uuid } = view;
  if (!boot) return [];
  const files = Object.entries(boot.files).map(
    ([path, file]) => [`${BOOT_FOLDER}/${path}`, fileLeaf(file)] as const,
  );
  if (!boot.hasTree) return files;
  return [...files, [`${BOOT_FOLDER}/${bootTreePath(uuid)}`, { kind: 'live', source: 'boot' }]];
}

function fileLeaf(file: ViewBootFile): Leaf {
  if ('lost' in file) return lostLeaf(file.lost);
  return bytesLeaf(Buffer.from(file.content, 'base64'), {
    contentType: 'text/plain; charset=utf-8',
    isSecretBearing: file.isSecretBearing,
  });
}
