import type { FileHandle } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { HANDED_FILE_HEADER, TAKES_FILE_HEADER } from '#shared/contract/metad-control.ts';
import { parseRange } from '#shared/http/parse-range.ts';
import { sendFilePart } from '#shared/stream/send-file-part.ts';
import { handOverFile, type MetadFileSocket } from './hand-over-file.ts';
import { refuse } from './refuse.ts';

/** An open file, or a part of it, as the content of an answer. */
export interface SentFile {
  readonly handle: FileHandle;
  readonly offset: number;
  readonly sizeBytes: number;
  /** With its quotes. A file without ETag ignores conditions. */
  readonly etag?: string;
}

/**
 * Answers GET and HEAD of a file. Evaluates ranges and conditions here. If metad asks for it, hands
 * over the open file in place of the bytes.
 */
export async function sendFile(
  file: SentFile,
  request: IncomingMessage,
  response: ServerResponse,
  metad: MetadFileSocket,
): Promise<void> {
  const { headers, method } = request;
  const { handle, offset, sizeBytes, etag } = file;
  response.setHeader('accept-ranges', 'bytes');
  if (etag !== undefined) response.setHeader('etag', etag);
  if (headers['if-none-match']?.split(',').some((tag) => tag.trim() === etag)) {
    response.writeHead(304);
    response.end();
    return;
  }
  const isSame =
    etag === undefined || headers['if-range'] === undefined || headers['if-range'] === etag;
  const range = isSame ? parseRange(headers.range, sizeBytes) : undefined;
  if (range === 'unsatisfiable') {
    response.setHeader('content-range', `bytes */${sizeBytes}`);
    return refuse(response, 416, `the file has ${sizeBytes} bytes`);
  }
  const [first, last] = range ?? [0, sizeBytes - 1];
  const length = last - first + 1;
  const head = (more: OutgoingHttpHeaders): void =>
    void response.writeHead(range ? 206 : 200, {
      'content-type': 'application/octet-stream',
      ...(range && { 'content-range': `bytes ${first}-${last}/${sizeBytes}` }),
      ...more,
    });
  if (method === 'HEAD' || length === 0) {
    head({ 'content-length': length });
    response.end();
    return;
  }
  // A handed over file would stay open without a reader.
  if (response.destroyed) return;
  const name = headers[TAKES_FILE_HEADER];
  if (typeof name === 'string' && handOverFile(handle.fd, name, metad)) {
    head({ 'content-length': 0, [HANDED_FILE_HEADER]: `${offset + first} ${length}` });
    response.end();
    return;
  }
  head({ 'content-length': length });
  await sendFilePart(handle.fd, [offset + first, offset + last], response);
}
