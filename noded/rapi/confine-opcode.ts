import type { Opcode } from '#shared/contract/opcode.ts';
import { confinePath } from '../host/open-host-file.ts';
import { parseSource } from '../downloads/transfer/source-url.ts';
import { notAllowed } from '../operations/host-paths.ts';

const FILE_PARAMETERS = ['cdrom_image_path', 'kernel_path', 'initrd_path'] as const;

/**
 * The same operation with every file of the node confined to a folder that the operator named: the
 * job, later ones that find the path stored, and other nodes open it there or not at all. Pure.
 * @throws AppError PATH_NOT_ALLOWED
 */
export function confineOpcode<Op extends Opcode>(opcode: Op, folders: readonly string[]): Op {
  const confine = (path: string): string => {
    const confined = confinePath(path, folders);
    if (confined === undefined) throw notAllowed(path.slice(0, 500));
    return confined;
  };
  const changed: Record<string, unknown> = { ...opcode };
  for (const key of ['osImage', 'personalizationPackage']) {
    const source = changed[key];
    if (typeof source === 'string' && parseSource(source)?.kind === 'path')
      changed[key] = confine(source);
  }
  for (const key of ['hvparams', 'installParameters']) {
    const parameters = changed[key];
    if (typeof parameters !== 'object' || parameters === null) continue;
    const given: Record<string, unknown> = { ...parameters };
    for (const name of FILE_PARAMETERS) {
      const source = given[name];
      if (typeof source !== 'string') continue;
      // A cdrom image may be a URL, and is none of the node's files then.
      const isUrl = name === 'cdrom_image_path' && parseSource(source)?.kind === 'url';
      if (!isUrl) given[name] = confine(source);
    }
    changed[key] = given;
  }
  // Strings took the place of strings.
  return changed as Op;
}
