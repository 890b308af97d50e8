import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redactSource } from '#shared/contract/redact-source.ts';
import { cleanLine } from '#shared/text/lines.ts';
import { describeStoreUrl } from '#shared/store/store-url.ts';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { parseRequestTarget } from '../../../metad/http/request-target.ts';
import { parseIni } from '../../../noded/instances/backup/ini.ts';
import { findLogin } from '../../../noded/content/downloads/transfer/netrc.ts';
import { threadMs } from '../../lab/thread-time.ts';

const MIB = 1024 ** 2;
const url = new URL('http://h/');
/** Parsers of foreign text with their worst input, a repeated pattern of any length. */
const readers: Readonly<Record<string, (length: number) => unknown>> = {
  'a key of blanks': (length) => attempt(() => parseIni(`[a]\na${' '.repeat(length)}x\n`)),
  'a section of blanks': (length) => attempt(() => parseIni(`[a]${' '.repeat(length)}x\n`)),
  'a URL of question marks': (length) => redactSource(`http://h/${'?'.repeat(length)}`),
  'a query of names': (length) => redactSource(`http://h/?${'token'.repeat(length / 5)}`),
  'a user of @': (length) => redactSource(`http://${'@'.repeat(length)}`),
  'the query of a store': (length) => describeStoreUrl(`${'a'.repeat(length)}@`),
  'a line of carriage returns': (length) => cleanLine(`${'\r'.repeat(length)}x`),
  'a path of slashes': (length) => resolveAddress(`/${'/'.repeat(length)}x`),
  'a target of letters': (length) => parseRequestTarget(`http://${'a'.repeat(length)}\n`),
  'a netrc of empty lines': (length) => findLogin(`macdef x\n${' \n'.repeat(length / 2)}`, url),
};

test('a mebibyte of the worst text takes no more time than its length says', () => {
  for (const [name, read] of Object.entries(readers)) {
    const small = quickest(() => read(MIB / 8));
    // At this rate 1 MiB would take an hour.
    assert.ok(small < 1000, `${name}: ${small} ms`);
    const large = quickest(() => read(MIB));
    // Eight times the text takes eight times the time, or 64 times if it is quadratic. Times below
    // 2 ms are not significant.
    assert.ok(large < Math.max(2, small) * 28, `${name}: ${small} ms, then ${large} ms`);
  }
});

function quickest(work: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round += 1) {
    best = Math.min(best, threadMs(work));
    // A slow result needs no second measurement.
    if (best > 1000) break;
  }
  return best;
}

function attempt(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
