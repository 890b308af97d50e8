/** A line is kept whole up to here, so that a mask sees it before it is cut for the log. In characters. */
const MAX_BUFFERED_LINE_LENGTH = 65_536;

export interface LineSplitter {
  push(text: string): void;
  /** Hands on an unfinished last line. */
  end(): void;
}

/** Cuts a stream of text into lines for the log. What a line has beyond the limit is dropped; control characters become `?`. */
export function createLineSplitter(onLine: (line: string) => void): LineSplitter {
  let rest = '';
  const append = (text: string): void => {
    if (rest.length < MAX_BUFFERED_LINE_LENGTH)
      rest += text.slice(0, MAX_BUFFERED_LINE_LENGTH - rest.length);
  };
  const emit = (): void => {
    onLine(cleanLine(rest));
    rest = '';
  };
  return {
    push(text) {
      const lines = text.split('\n');
      const last = lines.pop() ?? '';
      for (const line of lines) {
        append(line);
        emit();
      }
      append(last);
    },
    end() {
      if (rest !== '') emit();
    },
  };
}

/** A progress bar's `\r` keeps what was shown last; terminal escapes of a script must not reach the reader's terminal. */
function cleanLine(line: string): string {
  const shown = line.replace(/\r+$/, '').split('\r').at(-1) ?? '';
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  return shown.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?');
}
