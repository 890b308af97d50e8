import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from './context.ts';

const CTRL_C = '\x03';
const CTRL_D = '\x04';
const CTRL_U = '\x15';
const BACKSPACES = new Set(['\x7f', '\b']);
const MAX_CHARACTERS = 4096;

/**
 * Asks on stderr and reads a line from the terminal without echo.
 * @throws AppError INTERRUPTED on Ctrl-C or end of input, USAGE when stdin is not a terminal.
 */
export async function promptHidden(context: Context, question: string): Promise<string> {
  const { stdin, stderr } = context.terminal;
  if (!stdin.isTTY) {
    throw new AppError('USAGE', `no terminal to ask for '${question.replace(/: $/, '')}'`);
  }
  // Disable echo before the question appears.
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  stderr.write(question);
  try {
    return await readLine(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write('\n');
  }
}

/** Asks a yes/no question. Every answer except y and yes is no. */
export async function confirm(context: Context, question: string): Promise<boolean> {
  return /^y(es)?$/i.test(await promptShown(context, `${question} [y/N] `));
}

/**
 * Asks on stderr and reads a trimmed line from the terminal.
 * @throws AppError INTERRUPTED on Ctrl-C or end of input
 */
export async function promptShown(context: Context, question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const { stdin, stderr } = context.terminal;
  const lines = createInterface({ input: stdin, output: stderr });
  // The terminal is in raw mode: Ctrl-C is a byte that readline turns into this event.
  const interrupted = new Promise<never>((_resolve, reject) => {
    const stop = (): void => reject(new AppError('INTERRUPTED', 'nothing was changed'));
    lines.once('SIGINT', stop);
    lines.once('close', stop);
  });
  try {
    return (await Promise.race([lines.question(question), interrupted])).trim();
  } finally {
    lines.close();
  }
}

async function readLine(stdin: NodeJS.ReadStream): Promise<string> {
  return new Promise((resolve, reject) => {
    let typed: readonly string[] = [];
    const stop = (): void => void stdin.off('data', take);
    const interrupted = (): void => {
      stop();
      reject(new AppError('INTERRUPTED', 'no input; nothing was changed'));
    };
    const take = (chunk: string | Buffer): void => {
      for (const character of String(chunk)) {
        if (character === '\r' || character === '\n') {
          stop();
          resolve(typed.join(''));
          return;
        }
        if (character === CTRL_C || character === CTRL_D) {
          interrupted();
          return;
        }
        if (character === CTRL_U) typed = [];
        else if (BACKSPACES.has(character)) typed = typed.slice(0, -1);
        else if (character >= ' ' && typed.length < MAX_CHARACTERS) typed = [...typed, character];
      }
    };
    stdin.on('data', take);
    stdin.resume();
  });
}
