import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

export interface ShellAnswer {
  readonly status: number;
  /** Output and errors in their order. */
  readonly lines: readonly string[];
}

/** A persistent shell with its variables and background jobs. */
export class Shell implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  #unread = '';

  constructor([program, ...words]: readonly [string, ...string[]] = ['bash', '--norc']) {
    this.#child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.write('exec 2>&1\n');
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => (this.#unread += text));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async run(command: string): Promise<ShellAnswer> {
    const mark = `-- end of ${Math.random()} --`;
    this.#child.stdin.write(`${command}\nprintf '%s %s\\n' '${mark}' $?\n`);
    const end = new RegExp(`${mark} (\\d+)\\n`);
    let match = end.exec(this.#unread);
    while (!match) {
      await once(this.#child.stdout, 'data');
      match = end.exec(this.#unread);
    }
    const text = this.#unread.slice(0, match.index);
    this.#unread = this.#unread.slice(match.index + match[0].length);
    const lines = text.split('\n');
    if (lines.at(-1) === '') lines.pop();
    return { status: Number(match[1]), lines };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin.end();
    await ended;
  }
}
