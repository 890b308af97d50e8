import { MAX_BOOT_FILE_BYTES } from '#shared/contract/boot-view.ts';
import type { BootEnv } from '#shared/contract/boot-env.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { BootPlanInput } from './boot-plan.ts';
import { placeFile } from './place-files.ts';
import { createRenderData } from './render-data.ts';
import { newUse } from './render-input.ts';
import { createTemplateSet } from './template/render-templates.ts';
import { CallError, TemplateError } from './template/template-error.ts';

type Template = BootEnv['Templates'][number];

export interface PlacedTemplates {
  /** Paths are below the file root. */
  readonly placed: readonly { readonly template: Template; readonly path: string }[];
  readonly leftOut: readonly string[];
}

/**
 * Returns the paths of a BootEnv's files for an instance.
 * @param pathOf renders a template's Path; null skips the template
 * @throws AppError BOOTENV_INVALID, and errors of `pathOf`
 */
export function placeTemplates(
  { Name: bootEnv, Templates }: Pick<BootEnv, 'Name' | 'Templates'>,
  machine: BootPlanInput['machine'],
  pathOf: (template: Template) => string | null,
): PlacedTemplates {
  const placed = new Map<string, Template>();
  const leftOut: string[] = [];
  for (const template of Templates) {
    const rendered = pathOf(template);
    if (rendered === null) continue;
    const place = placeFile(bootEnv, template.Name, rendered, machine);
    if (place.kind === 'left-out') {
      leftOut.push(place.reason);
      continue;
    }
    const { path } = place;
    refuseBelow(bootEnv, path, [...placed.keys()]);
    const other = placed.get(path);
    if (other !== undefined)
      throw new AppError(
        'BOOTENV_INVALID',
        `BootEnv ${bootEnv}: the templates '${other.Name}' and '${template.Name}' have the same Path ${path}`,
        { details: { bootEnv, path } },
      );
    placed.set(path, template);
  }
  return { placed: [...placed].map(([path, template]) => ({ template, path })), leftOut };
}

/** @throws AppError BOOTENV_INVALID when a path is both a file and a folder of another path */
function refuseBelow(bootEnv: string, path: string, taken: readonly string[]): void {
  const other = taken.find((each) => each.startsWith(`${path}/`) || path.startsWith(`${each}/`));
  if (other === undefined) return;
  throw new AppError(
    'BOOTENV_INVALID',
    `BootEnv ${bootEnv}: one of the Paths ${other} and ${path} would be both a file and a folder`,
    { details: { bootEnv, path } },
  );
}

/** Steps of rendering all Paths of a BootEnv, a line each: at most some milliseconds. */
const MAX_STEPS = 5000;
/** Stands for any instance: a Path that is wrong for it is wrong for all. */
const ANY_MACHINE: BootPlanInput['machine'] = {
  name: 'any.example.com',
  uuid: '00000000-0000-4000-8000-000000000000',
  mac: '52:54:00:00:00:00',
  address: '169.254.0.1',
};

/**
 * Refuses a BootEnv whose Paths are wrong for every instance, when it is added. Paths that depend
 * on parameters or on missing templates are checked when a boot is planned. Pure.
 * @throws AppError BOOTENV_INVALID
 */
export function refuseWrongPaths(bootEnv: BootEnv): void {
  const set = createTemplateSet(new Map(), { maxSteps: MAX_STEPS, maxBytes: MAX_BOOT_FILE_BYTES });
  const ofAMachine = (): never => {
    throw new CallError('this value is only known for an instance');
  };
  const data = createRenderData(
    {
      machine: ANY_MACHINE,
      baseUrl: SERVICE_URL,
      bootEnv,
      opened: null,
      mirrorUrl: () => null,
      repositories: ofAMachine,
      params: { read: ofAMachine, compose: ofAMachine, has: ofAMachine, listPublic: ofAMachine },
    },
    newUse(),
  );
  placeTemplates(bootEnv, ANY_MACHINE, ({ Name, Path }) => {
    try {
      return ofAnyMachine(set.renderText(Name, Path, data).trim());
    } catch (error) {
      if (error instanceof TemplateError) return null;
      throw error;
    }
  });
}

/**
 * Replaces the identity of one machine by ANY_MACHINE's: a BootEnv may be written for one machine.
 */
function ofAnyMachine(path: string): string {
  const { uuid, mac, address } = ANY_MACHINE;
  return path
    .replace(/^machines\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\//, `machines/${uuid}/`)
    .replace(/^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\.ipxe$/, `${mac}.ipxe`)
    .replace(/^169\.254\.\d{1,3}\.\d{1,3}\.ipxe$/, `${address}.ipxe`);
}
