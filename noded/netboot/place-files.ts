import { bootPath } from '#shared/contract/boot-view.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { BootPlanInput } from './boot-plan.ts';
import { machinePath } from './render-input.ts';

export type Place =
  | { readonly kind: 'file'; readonly path: string }
  /** It is for a loader that is got by TFTP, which nothing here serves, or an unknown machine. */
  | { readonly kind: 'left-out'; readonly reason: string };

type Machine = BootPlanInput['machine'];

/** pxelinux, GRUB and elilo look for their configuration below these, or by the address in hex. */
const TFTP_FOLDERS = /^(?:pxelinux\.cfg|grub|grub2|boot\/grub|elilo)\//;

/** A folder that a Raspberry Pi 4 loads its firmware from, named by the MAC address. */
const PI_FOLDER = /^(?:[0-9a-f]{2}-){5}[0-9a-f]{2}\//;

/** Configuration of GRUB beside the place that GRUB was loaded from. */
const GRUB_FILE = /\/grub\.cfg(?:-[^/]*)?$/;

/** Where a machine's iPXE script may be, the preferred place first. */
export function scriptsOf({ mac, address }: Machine): readonly string[] {
  return [`${mac}.ipxe`, `${address}.ipxe`];
}

/**
 * Whether a file may be where its template says: below the machine's own folder, or as its script.
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

/** Whether only a loader that is loaded by TFTP reads a file. */
function isOfTftp(path: string, machine: Machine): boolean {
  const own = `${machinePath(machine)}/`;
  const isInOwnFolder = path.startsWith(own) && !path.startsWith(`${own}boot/`);
  const isBesideGrub = !isInOwnFolder && GRUB_FILE.test(path) && bootPath.safeParse(path).success;
  const isInFolder = TFTP_FOLDERS.test(path) || PI_FOLDER.test(path);
  return isBesideGrub || isInFolder || /^[0-9A-F]{8}\.conf$/.test(path);
}
