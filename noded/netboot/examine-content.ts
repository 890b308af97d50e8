import { othersTurn } from '#shared/clock/turns.ts';
import type { BootEnv, BootParam, BootTemplate } from '#shared/contract/boot-env.ts';
import { DEFAULT_IPXE_ID, lacksKernel } from '#shared/contract/boot-objects.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { whyBadDefault } from './params.ts';
import { refuseWrongPaths } from './place-templates.ts';
import { checkTemplate } from './template/render-templates.ts';
import { TemplateError } from './template/template-error.ts';

interface Content {
  readonly bootEnvs: readonly BootEnv[];
  readonly templates: readonly BootTemplate[];
}

interface ExaminedContent extends Content {
  readonly params: readonly BootParam[];
}

/** Steps of parsing one text: at most half a second for the longest accepted text. */
const MAX_STEPS = 500_000;

/**
 * Moves a template with the ID of a built-in one into the BootEnvs that come with it, as their own
 * text. Other BootEnvs keep the built-in template. Pure.
 */
export function scopeBuiltIn<Given extends Content>(given: Given): Given {
  const own = given.templates.find(({ ID }) => ID === DEFAULT_IPXE_ID);
  if (own === undefined) return given;
  const withOwn = (bootEnv: BootEnv): BootEnv => ({
    ...bootEnv,
    Templates: bootEnv.Templates.map((template) =>
      template.ID === DEFAULT_IPXE_ID ? { ...template, ID: '', Contents: own.Contents } : template,
    ),
  });
  return {
    ...given,
    bootEnvs: given.bootEnvs.map(withOwn),
    templates: given.templates.filter(({ ID }) => ID !== DEFAULT_IPXE_ID),
  };
}

/**
 * Refuses content that cannot boot any instance.
 * @throws AppError BOOTENV_INVALID; its details name template, line and column of a syntax error
 */
export async function examineContent({
  bootEnvs,
  templates,
  params,
}: ExaminedContent): Promise<void> {
  for (const param of params) examineParam(param);
  for (const bootEnv of bootEnvs) {
    examineBootEnv(bootEnv);
    await othersTurn();
  }
  for (const { ID, Contents } of templates) {
    examineText(`template ${ID}`, Contents, { template: ID });
    await othersTurn();
  }
}

function examineBootEnv(bootEnv: BootEnv): void {
  const { Name, OS, Templates } = bootEnv;
  if (lacksKernel(bootEnv))
    throw new AppError('BOOTENV_INVALID', `BootEnv ${Name} has no Kernel for amd64`, {
      details: { bootEnv: Name },
      hint: 'Set OS.SupportedArchitectures.amd64.Kernel, instances are amd64.',
    });
  for (const [index, template] of Templates.entries())
    for (const part of ['Contents', 'Path', 'Link'] as const)
      examineText(`BootEnv ${Name}: ${part} of '${template.Name}'`, template[part], {
        bootEnv: Name,
        field: ['Templates', index, part],
      });
  const { BootParams } = OS.SupportedArchitectures.amd64;
  examineText(`BootEnv ${Name}: BootParams`, BootParams, {
    bootEnv: Name,
    field: ['BootParams'],
  });
  refuseWrongPaths(bootEnv);
}

function examineParam(param: BootParam): void {
  const reason = whyBadDefault(param);
  if (reason === null) return;
  throw new AppError('BOOTENV_INVALID', `param ${param.Name}: ${reason}`, {
    details: { param: param.Name },
    hint: "Correct the Schema: a plan would use the default as a parameter's value",
  });
}

/**
 * Lists undefined templates that BootEnvs refer to by ID, as `BootEnv x: seed.tmpl`. Such a BootEnv
 * is accepted, since its templates may come later. Pure.
 */
export function listMissingTemplates(
  bootEnvs: readonly BootEnv[],
  known: readonly BootTemplate[],
): readonly string[] {
  const ids = new Set([DEFAULT_IPXE_ID, '', ...known.map(({ ID }) => ID)]);
  return bootEnvs.flatMap(({ Name, Templates }) =>
    [...new Set(Templates.map(({ ID }) => ID))]
      .filter((id) => !ids.has(id))
      .map((id) => `BootEnv ${Name}: ${id}`),
  );
}

function examineText(name: string, text: string, details: Record<string, unknown>): void {
  try {
    checkTemplate({ name, text }, MAX_STEPS);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const { line, column } = error.position;
    throw new AppError('BOOTENV_INVALID', `${name}:${line}:${column}: ${error.reason}`, {
      details: { ...details, line, column },
      hint: 'Correct the template and add it again.',
      cause: error,
    });
  }
}
