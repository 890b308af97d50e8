import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstallReport } from '#shared/contract/install-event.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseHookDocument } from '../../appliance/agent/hooks/document.ts';
import { TarGate } from '../../appliance/agent/overlay/tar-gate.ts';
import { recognizeImage } from '../../appliance/agent/image/format.ts';
import { EntryOutput } from '../../metad/channel/entry-output.ts';
import { parseDhcpRequest } from '../../metad/dhcp/codec.ts';
import { answerQuery } from '../../metad/names/dns-message.ts';
import { parseGanetiInstance } from '../../metad/ganeti/instance-dict.ts';
import { AgentWord } from '../../noded/provision/appliance/agent-word.ts';
import { parseExportRecord } from '../../noded/instances/backup/export-record.ts';
import { readXml } from '../../noded/instances/identity/read-xml.ts';
import { parseCreate } from '../../noded/api/rapi/instance-requests.ts';
import { parseFilter } from '../../noded/api/rapi/query-filter.ts';
import { FrameOpener } from '../../noded/cluster/peers/frame.ts';
import { runCases } from './run-cases.ts';
import { openPure, type Target } from './target.ts';
import { agentEventsTarget } from './targets/agent-events.ts';
import { configIniTarget } from './targets/config-ini.ts';
import { dhcpTarget } from './targets/dhcp.ts';
import { dnsTarget } from './targets/dns.ts';
import { hiddenValuesTarget } from './targets/hidden-values.ts';
import { hooksTarget } from './targets/hooks.ts';
import { httpTarget } from './targets/http.ts';
import { imageHeaderTarget } from './targets/image-header.ts';
import { lifecycleTarget } from './targets/lifecycle.ts';
import { luxiTarget } from './targets/luxi.ts';
import { peerFramesTarget } from './targets/peer-frames.ts';
import { rapiTarget } from './targets/rapi.ts';
import { tarTarget } from './targets/tar.ts';
import { templatesTarget } from './targets/templates.ts';
import { xmlTarget } from './targets/xml.ts';

/** Typical mistakes of such parsers, which the fuzzer must find. */
const planted: readonly (readonly [string, Target, RegExp])[] = [
  [
    'dhcp: an option read beyond the end',
    dhcpTarget((bytes) => {
      if (bytes.length > 241) bytes.readUInt8(242 + (bytes[241] ?? 0));
      return parseDhcpRequest(bytes);
    }),
    /RangeError/,
  ],
  [
    'dhcp: the transaction as a signed number',
    dhcpTarget((bytes) => {
      const request = parseDhcpRequest(bytes);
      return request && { ...request, transactionId: request.transactionId | 0 };
    }),
    /AssertionError/,
  ],
  [
    'dns: a label read beyond the end',
    dnsTarget((message, names) => {
      if (message.length > 12) message.readUInt8(13 + message.readUInt8(12));
      return answerQuery(message, names);
    }),
    /RangeError/,
  ],
  [
    'dns: a name that ends like a known one',
    dnsTarget((message, names) => {
      const [[known = '', address = ''] = []] = names;
      const end = message.subarray(12).indexOf(0);
      const name = message
        .toString('latin1', 13, 12 + end)
        .replaceAll(/[^ -~]/g, '.')
        .toLowerCase();
      return answerQuery(message, name.endsWith(known) ? new Map([[name, address]]) : names);
    }),
    /AssertionError/,
  ],
  [
    'xml: entities decoded twice',
    xmlTarget((text) => readXml(text.replaceAll('&amp;', '&'))),
    /AssertionError/,
  ],
  [
    'templates: a name looked up in an object',
    templatesTarget((text) => {
      const known: Record<string, () => string> = { upper: () => 'X' };
      const name = /\{\{(\w+) /.exec(text)?.[1] ?? 'upper';
      return (known[name] as () => string)();
    }),
    /TypeError/,
  ],
  [
    'luxi: a list where a dictionary is expected',
    luxiTarget((value) => {
      for (const nic of (value as { nics?: { ip: string }[] }).nics ?? []) nic.ip?.trim();
      return parseGanetiInstance(value);
    }),
    /TypeError/,
  ],
  [
    'hidden values: a mask of the value as it is alone',
    hiddenValuesTarget(
      (values) => (text) =>
        values.reduce((left, value) => left.replaceAll(value, '<redacted>'), text),
    ),
    /AssertionError/,
  ],
  [
    'rapi: an operator looked up in an object',
    rapiTarget({
      create: parseCreate,
      filter: (filter, names) => {
        const known: Record<string, unknown> = { '<': 1 };
        const [operator] = Array.isArray(filter) ? (filter as string[]) : [];
        return typeof operator === 'string' && known[operator]
          ? () => true
          : parseFilter(filter, names);
      },
    }),
    /a filter that is none/,
  ],
  [
    'peer-frames: a frame taken twice',
    peerFramesTarget(() => {
      const openers: FrameOpener[] = [];
      const key = new Uint8Array(32).fill(7);
      return {
        open: (bytes) => {
          openers.push(new FrameOpener(key, 0));
          const opened = openers.map((opener) => opener.open(bytes));
          return opened.find((frame) => typeof frame === 'object') ?? opened[0] ?? 'ignored';
        },
      };
    }),
    /is another|nobody sealed/,
  ],
  [
    'config-ini: a dump that is a path',
    configIniTarget((text) => {
      const record = parseExportRecord(text);
      return {
        ...record,
        disks: record.disks.map((disk) => ({
          ...disk,
          dump: text.includes('..') ? '../x' : disk.dump,
        })),
      };
    }),
    /outside of its directory/,
  ],
  [
    'agent-events: what was not signed',
    agentEventsTarget(() => {
      const word = new AgentWord();
      return { take: (report: InstallReport) => ('body' in report ? word.take(report) : report) };
    }),
    /nobody signed/,
  ],
  [
    'lifecycle: output whose beginning is taken twice',
    lifecycleTarget(undefined, () => {
      const output = new EntryOutput('boot/01-a');
      let end = 0;
      return {
        get end() {
          return end;
        },
        push: (offset, bytes, mask) => {
          end = Math.max(end, offset + bytes.length);
          return output.push(output.end, bytes, mask);
        },
        flush: (mask) => output.flush(mask),
      };
    }),
    /told twice/,
  ],
  [
    'hooks: a crash that is dressed as a refusal',
    hooksTarget((document) => {
      try {
        Buffer.from(document.content, 'base64')
          .toString()
          .match(/stages/)?.[0]
          .trim();
        if (document.content.length % 97 === 0) (undefined as unknown as string).trim();
        return parseHookDocument(document);
      } catch (error) {
        throw error instanceof AppError
          ? error
          : new AppError('HOOK_FAILED', 'no', { cause: error });
      }
    }),
    /dressed as a refusal/,
  ],
  [
    'image-header: a length that is believed',
    imageHeaderTarget((head) => {
      if (head.length > 20) Buffer.alloc(Math.min(head.readUInt32BE(16), 2 ** 30));
      return recognizeImage(head);
    }),
    /buffers of/,
  ],
  [
    'tar: a header that is only read when it comes in one piece',
    tarTarget(() => {
      const gate = new TarGate();
      return {
        passed: gate.passed,
        push: (chunk) => gate.push(chunk.length < 77 ? chunk.subarray(1) : chunk),
        end: () => gate.end(),
      };
    }),
    /depends on how/,
  ],
  [
    'http: a handler that fails on a method',
    httpTarget((handler) =>
      Object.assign(Object.create(Object.getPrototypeOf(handler) as object) as typeof handler, {
        handle: (...args: Parameters<typeof handler.handle>) => {
          const [, request, response] = args;
          if (request.method === 'HEAD') response.writeHead(500).end();
          else handler.handle(...args);
        },
        noteRefusal: handler.noteRefusal.bind(handler),
      }),
    ),
    /status 500/,
  ],
];

for (const [what, target, reason] of planted) {
  test(`finds ${what}`, async () => {
    const failure = await runCases(target, { seed: 1, first: 0, step: 1, cases: 30_000 });
    assert.match(failure?.reason ?? 'nothing', reason);
  });
}

test('finds what is kept of each input', async () => {
  const kept: Buffer[] = [];
  const target: Target = {
    name: 'keeps',
    generate: () => Buffer.alloc(100),
    open: () => openPure(() => void kept.push(Buffer.alloc(40_000, 1))),
  };
  const failure = await runCases(target, { seed: 1, first: 0, step: 1, cases: 4_000 });
  assert.match(failure?.reason ?? 'nothing', /bytes are held/);
});
