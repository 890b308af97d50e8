import { splitOsName } from '#shared/contract/os-name.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * One path segment without a leading dot or dash, because an OS name becomes part of paths and
 * arguments.
 */
const OS_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const VARIANT = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$/;

export interface OsName {
  readonly name: string;
  readonly variant: string | null;
}

/**
 * Splits `debootstrap+bookworm`.
 * @throws AppError OS_NOT_FOUND when the name is not valid for a definition
 */
export function parseOsName(text: string): OsName {
  const { name, variant } = splitOsName(text);
  if (!isOsName(name)) {
    throw new AppError('OS_NOT_FOUND', `'${text.slice(0, 200)}' is not an OS name`, {
      hint: 'An OS name is a directory name such as debootstrap, followed by +VARIANT if it has variants.',
    });
  }
  return { name, variant };
}

export function isOsName(name: string): boolean {
  return OS_NAME.test(name);
}

export function isVariantName(variant: string): boolean {
  return VARIANT.test(variant);
}
