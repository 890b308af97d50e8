/**
 * Reads an answer of the type `application/x-ndjson`: one JSON value per line, as it arrives. The
 * caller names the type, which the API's documentation gives.
 * @throws SyntaxError for a line that is not JSON
 */
export async function* readLines<T>(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<T> {
  let rest = '';
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    // The API documents the type of each line.
    for (const line of lines) if (line !== '') yield JSON.parse(line) as T;
  }
  if (rest !== '') yield JSON.parse(rest) as T;
}
