import { bootPath } from '#shared/contract/boot-view.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { BootPlanInput } from './boot-plan.ts';
import { machinePath } from './render-input.ts';

export type Place =
  | { readonly kind: 'file'; readonly path: string }
  /** For a TFTP loader, which is not supported, or for an unknown machine. */
  | { readonly kind: 'left-out'; readonly reason: string };

type Machine = BootPlanInput['machine'];

/** Folders where pxelinux, GRUB and elilo look for their configuration. */
const TFTP_FOLDERS = /^(?:pxelinux\.cfg|grub|grub2|boot\/grub|elilo)\//;

/** A Raspberry Pi 4 loads its firmware from a folder named after its MAC address. */
const PI_FOLDER = /^(?:[0-9a-f]{2}-){5}[0-9a-f]{2}\//;

const GRUB_FILE = /\/grub\.cfg(?:-[^/]*)?$/;

/** Returns the possible paths of an instance's iPXE script, the preferred one first. */
export function scriptsOf({ mac, address }: Machine): readonly string[] {
  return [`${mac}.ipxe`, `${address}.ipxe`];
}

/**
 * Decides whether a file may have its template's path: below the instance's own folder, or as its
 * script.
 * @throws AppError BOOTENV_INVALID
 */
export function placeFile(
  bootEnv: string,
  template: string,
  path: string,
  machine: Machine,
): Place {
  const own = `${machinePath(machine)}/`;
  const tree = `${own}boot`;
  if (isOfTftp(path, machine))
    return {
      kind: 'left-out',
      reason: `the template '${template}' at ${path.slice(0, 100)}: TFTP is not supported`,
    };
  if (path === 'default.ipxe')
    return {
      kind: 'left-out',
      reason: `the template '${template}' at ${path}: it is for unknown machines`,
    };
  const isOwn = path.startsWith(own) && path !== tree && !path.startsWith(`${tree}/`);
  if (bootPath.safeParse(path).success && (isOwn || scriptsOf(machine).includes(path)))
    return { kind: 'file', path };
  throw new AppError(
    'BOOTENV_INVALID',
    `BootEnv ${bootEnv}: the Path of the template '${template}' is outside the instance's files: '${path.slice(0, 200)}'`,
    {
      details: { bootEnv, template },
      hint: "A Path must begin with '{{.Machine.Path}}/' but not with '{{.Machine.Path}}/boot/', or be '{{.Machine.Address}}.ipxe'.",
    },
  );
}

function isOfTftp(path: string, machine: Machine): boolean {
  const own = `${machinePath(machine)}/`;
  const isInOwnFolder = path.startsWith(own) && !path.startsWith(`${own}boot/`);
  const isBesideGrub = !isInOwnFolder && GRUB_FILE.test(path) && bootPath.safeParse(path).success;
  const isInFolder = TFTP_FOLDERS.test(path) || PI_FOLDER.test(path);
  return isBesideGrub || isInFolder || /^[0-9A-F]{8}\.conf$/.test(path);
}
