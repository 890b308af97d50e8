import { hash } from 'node:crypto';
import type { z } from 'zod';
import {
  bootEnvCustomize,
  CUSTOMIZE_PARAM,
  EFI_LOADER,
  packageRepositories,
  type BootEnv,
  type PackageRepository,
} from '#shared/contract/boot-env.ts';
import { DEFAULT_IPXE_ID, lacksKernel } from '#shared/contract/boot-objects.ts';
import { MAX_BOOT_BYTES, MAX_BOOT_FILE_BYTES } from '#shared/contract/boot-view.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { chooseSource } from './choose-source.ts';
import { customizeBootEnv } from './customize-boot-env.ts';
import { DEFAULT_IPXE } from './default-ipxe.ts';
import type { BootFile, BootPlan, BootPlanInput } from './boot-plan.ts';
import { scriptsOf } from './place-files.ts';
import { placeTemplates } from './place-templates.ts';
import { createParamReader, hasParam, readParam, withoutSecrets } from './params.ts';
import { digestPublic } from './public-basis.ts';
import { createRenderData } from './render-data.ts';
import { newUse, type RenderInput, type RenderUse } from './render-input.ts';
import { STABLE_RELEASE } from './repositories.ts';
import { createTemplateSet, type TemplateSet } from './template/render-templates.ts';
import { asCallError, CallError, TemplateError } from './template/template-error.ts';

/**
 * For all templates of a plan together. Debian's take some hundreds, dr-provision's largest some
 * thousands. The limit is at most about 0.1 s, in which noded serves nothing else.
 */
const MAX_STEPS = 100_000;

/**
 * Renders all files that an instance boots by. Pure.
 * @throws AppError BOOTENV_INVALID for paths outside the instance's files, BOOTENV_NO_SOURCE when
 * neither an archive nor an allowed repository has kernel and initrds, BOOTENV_RENDER with
 * template, line and column
 */
export function planBootEnv(input: BootPlanInput): BootPlan {
  const customize = readDocument(input, CUSTOMIZE_PARAM, bootEnvCustomize) ?? {};
  const override = ownValue(customize, input.bootEnv.Name);
  const bootEnv = customizeBootEnv(input.bootEnv, override);
  requireParams(bootEnv, input);
  let read: readonly PackageRepository[] | undefined;
  const repositories = (): readonly PackageRepository[] => {
    read ??= readDocument(input, 'package-repositories', packageRepositories) ?? [];
    return read;
  };
  const source = chooseSource(bootEnv, repositories, input);
  const params = createParamReader(input);
  const { IsoFile, Sha256, Kernel, Initrds } = bootEnv.OS.SupportedArchitectures.amd64;
  const archive = source?.kind === 'archive' ? input.archive(IsoFile, Sha256) : null;
  // Looked up once, however often templates ask.
  const opened = archive && { hasRelease: archive.has(STABLE_RELEASE) };
  const common = { ...input, bootEnv, repositories, opened };
  const secretless = { ...common, params: createParamReader(withoutSecrets(input)) };
  const { files, leftOut, constants } = renderFiles({ ...common, params }, input.templates, {
    input: secretless,
    publicBasis: once(() => digestPublic({ ...input, bootEnv }, source)),
  });
  return {
    bootEnv: bootEnv.Name,
    osName: bootEnv.OS.Name,
    script: chooseScript(bootEnv, input, files),
    files,
    source,
    kernel: Kernel === '' ? null : Kernel,
    initrds: Initrds,
    httpLoader: bootEnv.Loaders[EFI_LOADER] ?? null,
    leftOut,
    constants,
    lacksKernel: lacksKernel(bootEnv),
  };
}

/** Reads a param that is a document of dr-provision. Undefined for an absent param. */
function readDocument<Schema extends z.ZodType>(
  input: BootPlanInput,
  name: string,
  schema: Schema,
): z.output<Schema> | undefined {
  const invalid = (reason: string): AppError =>
    new AppError('BOOTENV_INVALID', `the parameter '${name}' of ${input.machine.name}: ${reason}`, {
      details: { bootEnv: input.bootEnv.Name, parameter: name },
      hint: `Correct '${name}' where it is set: gnt-instance info shows where.`,
    });
  const found = asInvalid(() => readParam(name, input), invalid);
  if (!found) return undefined;
  // It determines the list of files, and is shown in names, addresses and messages.
  if (found.kind === 'lost' || found.isHidden)
    throw invalid('it is private, secret or Secure, but must be public');
  const document = typeof found.value === 'string' ? parseText(found.value, invalid) : found.value;
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalid(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'invalid'}`);
}

function asInvalid<Result>(run: () => Result, invalid: (reason: string) => AppError): Result {
  try {
    return run();
  } catch (error) {
    const reason = asCallError(error);
    if (reason instanceof CallError) throw invalid(reason.message);
    throw error;
  }
}

function parseText(text: string, invalid: (reason: string) => AppError): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('it is not JSON');
  }
}

function requireParams({ Name, RequiredParams }: BootEnv, input: BootPlanInput): void {
  const missing = RequiredParams.filter(
    (name) => !input.parameters.has(name) && !hasDefault(name, input),
  );
  if (missing.length === 0) return;
  throw new AppError(
    'BOOTENV_RENDER',
    `BootEnv ${Name} requires the parameters ${missing.join(', ')}, which ${input.machine.name} does not have`,
    {
      details: { bootEnv: Name, missing },
      hint: `Set them: gnt-instance modify -O ${missing[0] ?? ''}=… ${input.machine.name}`,
    },
  );
}

function hasDefault(name: string, { schemas }: BootPlanInput): boolean {
  return hasParam(name, { schemas, parameters: new Map(), layers: [] });
}

interface RenderedFiles {
  readonly files: readonly BootFile[];
  readonly leftOut: readonly string[];
  readonly constants: readonly string[];
}

interface Secretless {
  readonly input: RenderInput;
  /** Computed only for files with secrets. */
  readonly publicBasis: () => string;
}

function once(make: () => string): () => string {
  let made: string | undefined;
  return () => (made ??= make());
}

function renderFiles(
  input: RenderInput,
  templates: ReadonlyMap<string, string>,
  secretless: Secretless,
): RenderedFiles {
  const { bootEnv, machine } = input;
  const inline = bootEnv.Templates.filter(({ Contents }) => Contents !== '');
  const set = createTemplateSet(
    new Map([
      [DEFAULT_IPXE_ID, DEFAULT_IPXE],
      ...templates,
      ...inline.map(({ Name, Contents }) => [Name, Contents] as const),
    ]),
    { maxSteps: MAX_STEPS, maxBytes: MAX_BOOT_FILE_BYTES },
  );
  const files = new Map<string, BootFile>();
  const constants = new Set<string>();
  const links: { readonly name: string; readonly path: string; readonly target: string }[] = [];
  const { placed, leftOut } = placeTemplates(bootEnv, machine, ({ Name, Path }) =>
    renderText(input, set, `${Name} (Path)`, Path),
  );
  for (const { template, path } of placed) {
    const { Name, ID, Link } = template;
    if (Link === '')
      files.set(path, renderFile({ input, secretless, set, constants }, path, ID || Name));
    else links.push({ name: Name, path, target: renderText(input, set, `${Name} (Link)`, Link) });
  }
  for (const { name, path, target } of links) {
    const file = files.get(target);
    if (!file)
      throw new AppError(
        'BOOTENV_INVALID',
        `BootEnv ${bootEnv.Name}: the Link of '${name}' leads to ${target}, which is not a file of its templates`,
        { details: { bootEnv: bootEnv.Name, template: name } },
      );
    files.set(path, { ...file, path });
  }
  refuseTooMuch(bootEnv, [...files.values()]);
  return { files: [...files.values()], leftOut, constants: [...constants].sort() };
}

interface Renderer {
  readonly input: RenderInput;
  readonly secretless: Secretless;
  readonly set: TemplateSet;
  readonly constants: Set<string>;
}

function renderFile(
  { input, secretless, set, constants }: Renderer,
  path: string,
  name: string,
): BootFile {
  if (!set.has(name)) {
    const { Name } = input.bootEnv;
    throw new AppError('BOOTENV_RENDER', `BootEnv ${Name}: template '${name}' does not exist`, {
      details: { bootEnv: Name, template: name },
      hint: 'Add it: gnt-bootenv add FILE',
    });
  }
  const use = newUse();
  const text = attempt({ input, use, set, name }, () =>
    set.render(name, createRenderData(input, use, path)),
  );
  for (const member of use.constants) constants.add(member);
  return {
    path,
    contents: use.lostSecrets.size > 0 ? null : text,
    isSecretBearing: use.isSecretBearing,
    lostSecrets: [...use.lostSecrets],
    basis: use.hasSecret ? digestSecretless(secretless, set, name, path) : null,
  };
}

/**
 * Returns the file's digest without its secrets. For a failure that only stand-ins cause, digests
 * the message.
 */
function digestSecretless(
  { input, publicBasis }: Secretless,
  set: TemplateSet,
  name: string,
  path: string,
): string {
  const digest = (text: string): string => hash('sha256', `${publicBasis()}\n${text}`);
  try {
    return digest(set.render(name, createRenderData(input, newUse(), path)));
  } catch (error) {
    if (error instanceof TemplateError) return digest(error.message);
    throw error;
  }
}

/** Renders a text that decides where a file is, so that it must not depend on a secret. */
function renderText(input: RenderInput, set: TemplateSet, name: string, text: string): string {
  const use = newUse();
  const rendered = attempt({ input, use, set, name }, () =>
    set.renderText(name, text, createRenderData(input, use)),
  );
  if (use.isSecretBearing)
    throw new AppError(
      'BOOTENV_RENDER',
      `BootEnv ${input.bootEnv.Name}: ${name} depends on a parameter that is not public`,
      {
        details: { bootEnv: input.bootEnv.Name, template: name },
        hint: 'Do not use such a parameter in file names.',
      },
    );
  return rendered.trim();
}

interface Attempt {
  readonly input: RenderInput;
  readonly use: RenderUse;
  readonly set: TemplateSet;
  readonly name: string;
}

/** Returns '' for a failure of a file that needs a lost secret. */
function attempt({ input, use, set, name }: Attempt, render: () => string): string {
  try {
    return render();
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    if (use.lostSecrets.size > 0) return '';
    const { Name } = input.bootEnv;
    const { position, reason } = error;
    // A reason can contain the secret, and so can the name of a template that a value defines. Both
    // are hidden after a secret was read.
    const isKnown = error.template === name || set.has(error.template);
    const template =
      !use.isSecretBearing || isKnown ? error.template : `text that ${name} is made of`;
    const shown = use.isSecretBearing
      ? 'the reason is hidden, because a parameter that is not public was read'
      : reason;
    const at = `${template}:${position.line}:${position.column}`;
    throw new AppError('BOOTENV_RENDER', `BootEnv ${Name}: template ${at}: ${shown}`, {
      details: { bootEnv: Name, template, line: position.line, column: position.column },
      hint: `After the correction, show the result: gnt-bootenv render ${Name} ${input.machine.name}`,
      // The cause's message contains the hidden values.
      cause: use.isSecretBearing ? undefined : error,
    });
  }
}

function refuseTooMuch({ Name }: BootEnv, files: readonly BootFile[]): void {
  const bytes = files.reduce((sum, { contents }) => sum + Buffer.byteLength(contents ?? ''), 0);
  if (bytes <= MAX_BOOT_BYTES) return;
  throw new AppError(
    'BOOTENV_RENDER',
    `BootEnv ${Name}: its files are larger than ${MAX_BOOT_BYTES} bytes in total (${bytes})`,
    {
      details: { bootEnv: Name, bytes, maxBytes: MAX_BOOT_BYTES },
      hint: 'Serve large files from the archive.',
    },
  );
}

function chooseScript(
  { Name }: BootEnv,
  { machine }: BootPlanInput,
  files: readonly BootFile[],
): string {
  const script = scriptsOf(machine).find((path) => files.some((file) => file.path === path));
  if (script !== undefined) return script;
  throw new AppError('BOOTENV_INVALID', `BootEnv ${Name} has no iPXE script for its instance`, {
    details: { bootEnv: Name },
    hint: `Add a template with ID ${DEFAULT_IPXE_ID} and Path '{{.Machine.MacAddr "ipxe"}}.ipxe'.`,
  });
}
