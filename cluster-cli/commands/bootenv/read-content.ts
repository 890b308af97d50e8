import { isScalar, Scalar, type Document } from 'yaml';
import type { z } from 'zod';
import {
  bootEnvDocument,
  bootParam,
  bootTemplate,
  foldBootEnv,
  type BootEnv,
  type BootParam,
  type BootTemplate,
} from '#shared/contract/boot-env.ts';
import { lacksKernel, LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { lineOfPath } from '#shared/yaml/line-of-path.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';
import type { ValueSource } from '../../values/value-source.ts';
import { type ContentFile, listContentFiles, SECTIONS, type Section } from './list-files.ts';
import type { ContentPlaces } from './locate-content.ts';
import { profileDocument, type ProfileValues, toProfile } from './read-profile.ts';

/** Lines and list items of a file. A bundle contains all templates of a product. */
const MAX_ITEMS = 200_000;
const MAX_ALIASES = 200;

/** Objects of one command line, in the node's format. */
export interface BootContent {
  readonly bootEnvs: BootEnv[];
  readonly templates: BootTemplate[];
  readonly params: BootParam[];
  readonly profiles: ProfileValues[];
  /** Ignored parts with their places. */
  readonly leftOut: string[];
  /** Places of BootEnvs and templates, for refusals of the daemon. */
  readonly places: ContentPlaces;
}

type Path = readonly (string | number)[];

/**
 * Reads boot environments and their objects from YAML or JSON with one object, a list, or a bundle
 * with sections; from a folder of such files; and from templates, whose ID is the file name.
 * @throws AppError BOOTENV_INVALID with file and line, FILE_UNREADABLE, VALIDATION
 */
export function readBootContent(paths: readonly string[], values: ValueSource): BootContent {
  const content: BootContent = {
    ...{ bootEnvs: [], templates: [], params: [], profiles: [], leftOut: [] },
    places: { templates: new Map(), bootEnvs: new Map() },
  };
  const unusable: AppError[] = [];
  for (const path of paths) {
    const { files, leftOut } = listContentFiles(path);
    content.leftOut.push(...leftOut.map((name) => `${path}: ${name}`));
    for (const file of files) {
      const take = (): void => readFile(file, values, content, unusable);
      if (file.section === null) take();
      else collectUnusable(unusable, take);
    }
  }
  const [first] = unusable;
  if (first !== undefined && isEmpty(content)) throw first;
  content.leftOut.push(...unusable.map(({ message }) => message));
  return content;
}

function isEmpty({ bootEnvs, templates, params, profiles }: BootContent): boolean {
  return [bootEnvs, templates, params, profiles].every(({ length }) => length === 0);
}

/**
 * Collects the error of one object, so that the others can be used. Published folders contain
 * objects that only dr-provision can use.
 */
function collectUnusable(unusable: AppError[], take: () => void): void {
  try {
    take();
  } catch (error) {
    const isOfObject = isAppError(error, 'BOOTENV_INVALID') || isAppError(error, 'VALIDATION');
    if (!isOfObject) throw error;
    unusable.push(error);
  }
}

function readFile(
  file: ContentFile,
  values: ValueSource,
  content: BootContent,
  unusable: AppError[],
): void {
  const text = values.readWholeText('FILE', file.path);
  const isStructured = /\.(ya?ml|json)$/i.test(file.name);
  if (!isStructured) {
    const isTemplate = file.section === 'templates' || /\.tmpl$/i.test(file.name);
    if (!isTemplate && file.section !== null) {
      content.leftOut.push(`${file.path}: neither YAML nor JSON`);
      return;
    }
    if (isTemplate) {
      const reading = new Reading(file.path, '', null);
      takeTemplate(reading, [], { ID: file.name, Contents: text }, content);
      return;
    }
  }
  const reading = parse(file.path, text);
  const value = reading.value();
  if (file.section === 'templates' && !isObjectWith(value, 'Contents')) {
    takeTemplate(new Reading(file.path, '', null), [], { ID: file.name, Contents: text }, content);
    return;
  }
  takeDocument(reading, value, file.section, { content, unusable });
}

/** A parsed file that finds the line of a faulty value. */
class Reading {
  readonly file: string;
  readonly #text: string;
  readonly #document: Document.Parsed | null;

  constructor(file: string, text: string, document: Document.Parsed | null) {
    this.file = file;
    this.#text = text;
    this.#document = document;
  }

  value(): unknown {
    try {
      return this.#document?.toJS({ maxAliasCount: MAX_ALIASES });
    } catch (error) {
      throw new AppError('BOOTENV_INVALID', `${this.file}: its aliases expand to too much`, {
        cause: error,
      });
    }
  }

  /** Returns `FILE:LINE` of a value or its nearest existing ancestor. */
  placeOf(path: Path): string {
    const line = this.#document && lineOfPath(this.#document, this.#text, path);
    return line === null ? this.file : `${this.file}:${line}`;
  }

  /**
   * Returns `FILE:LINE` of a line of a text, or of the text's start if its lines differ from the
   * file's.
   */
  placeIn(path: Path, line: number): string {
    const node: unknown = this.#document?.getIn(path, true);
    if (this.#document === null) return `${this.file}:${line}`;
    const start = this.placeOf(path);
    if (!isScalar(node) || node.type !== Scalar.BLOCK_LITERAL) return start;
    const first = Number(start.slice(start.lastIndexOf(':') + 1));
    return `${this.file}:${first + line}`;
  }
}

function parse(file: string, text: string): Reading {
  const read = readYaml(text, {}, MAX_ITEMS);
  if ('document' in read) return new Reading(file, text, read.document);
  const [, line, reason = read.problem.reason] =
    /^line (\d+): (.*)$/s.exec(read.problem.reason) ?? [];
  throw new AppError(
    'BOOTENV_INVALID',
    `${file}${line === undefined ? '' : `:${line}`}: ${reason}`,
    { ...(read.problem.hint !== undefined && { hint: read.problem.hint }) },
  );
}

interface Taken {
  readonly content: BootContent;
  /** Errors of unusable objects in folders and bundles. */
  readonly unusable: AppError[];
}

function takeDocument(
  reading: Reading,
  value: unknown,
  section: Section | null,
  { content, unusable }: Taken,
): void {
  if (isObjectWith(value, 'sections'))
    return takeBundle(reading, value.sections, { content, unusable });
  const isList = Array.isArray(value);
  const objects: readonly unknown[] = isList ? value : [value];
  for (const [index, object] of objects.entries()) {
    const path = isList ? [index] : [];
    const take = (): void => takeObject(reading, path, object, section ?? kindOf(object), content);
    if (section === null) take();
    else collectUnusable(unusable, take);
  }
}

function takeBundle(reading: Reading, sections: unknown, { content, unusable }: Taken): void {
  if (typeof sections !== 'object' || sections === null)
    throw invalid(reading, ['sections'], 'expected a map of sections');
  for (const [name, objects] of Object.entries<unknown>({ ...sections })) {
    const section = SECTIONS.find((one) => one === name);
    if (section === undefined || typeof objects !== 'object' || objects === null) {
      content.leftOut.push(`${reading.placeOf(['sections', name])}: ${name}`);
      continue;
    }
    // The objects are a map by name, or a list.
    for (const [key, object] of Object.entries<unknown>({ ...objects })) {
      const at = Array.isArray(objects) ? Number(key) : key;
      collectUnusable(unusable, () =>
        takeObject(reading, ['sections', name, at], object, section, content),
      );
    }
  }
}

/** Returns the kind of an object, by fields that only one kind has. */
function kindOf(object: unknown): Section | null {
  if (isObjectWith(object, 'Contents') && !isObjectWith(object, 'Name')) return 'templates';
  if (isObjectWith(object, 'Schema')) return 'params';
  if (isObjectWith(object, 'Params')) return 'profiles';
  return isObjectWith(object, 'OS') || isObjectWith(object, 'Templates') ? 'bootenvs' : null;
}

function takeObject(
  reading: Reading,
  path: Path,
  object: unknown,
  kind: Section | null,
  content: BootContent,
): void {
  switch (kind) {
    case 'bootenvs': {
      const { bootEnv, leftOut } = foldBootEnv(check(reading, path, bootEnvDocument, object));
      if (lacksKernel(bootEnv))
        throw invalid(reading, [...path, 'OS'], `BootEnv ${bootEnv.Name} has no Kernel for amd64`);
      if (bootEnv.Name === LOCAL_BOOT_ENV)
        content.leftOut.push(
          `${reading.placeOf(path)}: BootEnv ${LOCAL_BOOT_ENV}, which is built in`,
        );
      else {
        content.bootEnvs.push(bootEnv);
        content.places.bootEnvs.set(bootEnv.Name, (field, line) =>
          reading.placeIn([...path, ...field], line),
        );
      }
      content.leftOut.push(...leftOut.map((what) => `${reading.placeOf(path)}: ${what}`));
      return;
    }
    case 'templates':
      return takeTemplate(reading, path, object, content);
    case 'params':
      content.params.push(check(reading, path, bootParam, object));
      return;
    case 'profiles': {
      const { profile, leftOut } = toProfile(check(reading, path, profileDocument, object));
      content.profiles.push(profile);
      content.leftOut.push(...leftOut.map((what) => `${reading.placeOf(path)}: ${what}`));
      return;
    }
    case null:
      throw invalid(
        reading,
        path,
        'neither a BootEnv (OS), nor a template (ID, Contents), a param (Name, Schema) or a profile (Name, Params)',
      );
  }
}

function takeTemplate(reading: Reading, path: Path, object: unknown, content: BootContent): void {
  const template = check(reading, path, bootTemplate, object);
  content.templates.push(template);
  content.places.templates.set(template.ID, (field, line) =>
    reading.placeIn([...path, ...field], line),
  );
}

function check<T>(reading: Reading, path: Path, schema: z.ZodType<T>, object: unknown): T {
  const parsed = schema.safeParse(object);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const inside = (issue?.path ?? []).map((part) => (typeof part === 'symbol' ? '' : part));
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys : [];
  const field = [...inside, ...keys.slice(0, 1)];
  const what = keys.length > 0 ? 'an unknown field' : (issue?.message ?? 'not valid');
  throw invalid(reading, [...path, ...field], `${formatField(field)}${what}`);
}

function formatField(field: Path): string {
  const name = field
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '');
  return name === '' ? '' : `${name}: `;
}

function invalid(reading: Reading, path: Path, reason: string): AppError {
  return new AppError('BOOTENV_INVALID', `${reading.placeOf(path)}: ${reason}`, {
    details: { file: reading.file },
    hint: 'The fields are those of dr-provision: gnt-bootenv add --help',
  });
}

function isObjectWith<Key extends string>(
  value: unknown,
  key: Key,
): value is Readonly<Record<Key, unknown>> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key);
}
