/** DNS as far as one record needs it (RFC 1035). Pure: bytes to bytes. */

const HEADER_BYTES = 12;
/** Longest name and its type and class. */
const MAX_QUESTION_BYTES = 255 + 4;
const TYPE_A = 1;
const TYPE_ANY = 255;
const CLASS_IN = 1;
const TTL_S = 300;
/** Codes of answers (RFC 1035, 4.1.1). */
const NO_ERROR = 0;
const NOT_IMPLEMENTED = 4;
const REFUSED = 5;
const IS_RESPONSE = 0x8000;
const IS_AUTHORITATIVE = 0x0400;
const OPCODE_AND_RECURSION = 0x7900;

interface Question {
  /** In lower case, without the dot at the end. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** The question as received. */
  readonly bytes: Buffer;
}

/**
 * Answers a query. Other names than the given ones are refused, so that a resolver asks its next
 * server.
 * @param addresses IPv4 addresses by name
 * @returns null for a message that is not a query of one question
 */
export function answerQuery(
  message: Buffer,
  addresses: ReadonlyMap<string, string>,
): Buffer | null {
  if (message.length < HEADER_BYTES) return null;
  const flags = message.readUInt16BE(2);
  if ((flags & IS_RESPONSE) !== 0) return null;
  if ((flags & 0x7800) !== 0) return encode(message, null, NOT_IMPLEMENTED, null);
  const question = message.readUInt16BE(4) === 1 ? readQuestion(message) : null;
  if (question === null) return null;
  const address = question.class === CLASS_IN ? addresses.get(question.name) : undefined;
  if (address === undefined) return encode(message, question, REFUSED, null);
  const isAsked = question.type === TYPE_A || question.type === TYPE_ANY;
  return encode(message, question, NO_ERROR, isAsked ? address : null);
}

/** @returns null if it does not end, is too long or contains a pointer */
function readQuestion(message: Buffer): Question | null {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > 63) return null;
    at += 1;
    if (length === 0) break;
    labels.push(message.toString('latin1', at, at + length).toLowerCase());
    at += length;
    if (at - HEADER_BYTES > MAX_QUESTION_BYTES) return null;
  }
  if (at + 4 > message.length) return null;
  return {
    name: labels.join('.'),
    type: message.readUInt16BE(at),
    class: message.readUInt16BE(at + 2),
    bytes: message.subarray(HEADER_BYTES, at + 4),
  };
}

function encode(
  query: Buffer,
  question: Question | null,
  code: number,
  address: string | null,
): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  query.copy(header, 0, 0, 2);
  const flags = query.readUInt16BE(2) & OPCODE_AND_RECURSION;
  header.writeUInt16BE(IS_RESPONSE | IS_AUTHORITATIVE | flags | code, 2);
  header.writeUInt16BE(question === null ? 0 : 1, 4);
  header.writeUInt16BE(address === null ? 0 : 1, 6);
  const parts = [header, question?.bytes ?? Buffer.alloc(0)];
  return Buffer.concat(address === null ? parts : [...parts, encodeAddress(address)]);
}

/** The record's name is a pointer to that of the question. */
function encodeAddress(address: string): Buffer {
  const record = Buffer.alloc(16);
  record.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  record.writeUInt16BE(TYPE_A, 2);
  record.writeUInt16BE(CLASS_IN, 4);
  record.writeUInt32BE(TTL_S, 6);
  record.writeUInt16BE(4, 10);
  for (const [index, part] of address.split('.').entries()) record[12 + index] = Number(part);
  return record;
}
