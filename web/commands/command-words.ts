import { commandLine } from '../parts/quote.ts';

/** A file that a command reads, such as the value of a secret. */
export interface CommandFile {
  readonly name: string;
  /** Words for the user, such as `value of password`. */
  readonly holds: string;
  readonly content: Uint8Array;
}

/** A command of the command line, as text for a shell. */
export interface EquivalentCommand {
  readonly text: string;
  readonly files: readonly CommandFile[];
  /** Parts of the operation that the command does not contain. */
  readonly missing: readonly string[];
}

/** Values of list options that do not stand for themselves. */
const SPECIAL_VALUES = new Set(['none', 'default']);

/**
 * Collects the words of a command. Values that must not appear on a command line, and values
 * without a spelling there, go into files.
 */
export class CommandWords {
  readonly #words: string[];
  readonly #names: string[] = [];
  readonly #files: CommandFile[] = [];
  readonly #missing: string[] = [];

  constructor(...words: readonly string[]) {
    this.#words = [...words];
  }

  /** Adds an option with its value. */
  option(name: string, value: string): this {
    if (value.startsWith('-') && name.startsWith('--')) this.#words.push(`${name}=${value}`);
    else this.#words.push(name, value);
    return this;
  }

  flag(name: string): this {
    this.#words.push(name);
    return this;
  }

  /** Adds an option whose value may be `@FILE`; a value that begins with `@` is escaped. */
  value(name: string, value: string): this {
    return this.option(name, value.startsWith('@') ? `\\${value}` : value);
  }

  /** Adds an option that names a file. */
  file(name: string, file: CommandFile, prefix = ''): this {
    return this.option(name, prefix + this.#add(file));
  }

  /**
   * Adds a list option with `key=value`.
   * @param prefix text before the list, such as `0:`
   * @param isHidden every value goes into a file
   */
  list(
    name: string,
    values: Readonly<Record<string, string | null>>,
    prefix = '',
    isHidden = false,
  ): this {
    const elements = Object.entries(values).map(([key, value]) => {
      if (value === null) return `-${key}`;
      if (!isHidden && !SPECIAL_VALUES.has(value)) return `${key}=${escapeValue(value)}`;
      const file = `${key.replaceAll('/', '-')}.txt`;
      const content = new TextEncoder().encode(`${value}\n`);
      return `${key}=@${this.#add({ name: file, holds: `value of ${key}`, content })}`;
    });
    return elements.length === 0 ? this : this.option(name, prefix + elements.join(','));
  }

  /** Adds arguments, which follow the options. */
  names(...names: readonly string[]): this {
    this.#names.push(...names);
    return this;
  }

  /** Notes a part of the operation that has no option. */
  lacks(part: string): this {
    this.#missing.push(part);
    return this;
  }

  finish(): EquivalentCommand {
    return {
      text: commandLine(...this.#words, ...this.#names),
      files: this.#files,
      missing: this.#missing,
    };
  }

  /** Adds a file under a name of its own. */
  #add(file: CommandFile): string {
    let { name } = file;
    for (let count = 2; this.#files.some((other) => other.name === name); count += 1)
      name = `${count}-${file.name}`;
    this.#files.push({ ...file, name });
    return name;
  }
}

/** Escapes an element of a list whose elements stand between commas. */
export function escapeElement(text: string): string {
  return text.replaceAll(/[\\,]/g, (character) => `\\${character}`);
}

function escapeValue(value: string): string {
  const escaped = escapeElement(value);
  return escaped.startsWith('@') ? `\\${escaped}` : escaped;
}

/** Formats bytes as a size with the largest unit that divides it, in whole MiB. */
export function formatSize(bytes: number): string {
  const mib = Math.ceil(bytes / 1024 / 1024);
  return mib % 1024 === 0 ? `${mib / 1024}G` : `${mib}M`;
}

/** Returns yes or no, as options take it. */
export function yesOrNo(is: boolean): string {
  return is ? 'yes' : 'no';
}
