import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { AUDIT_LINES_AT_ONCE } from '../../../metad/config/limits.ts';
import { Audit } from '../../../metad/http/audit.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

function lab() {
  const lines: (readonly [string, string, object])[] = [];
  const write =
    (level: string) =>
    (event: string, fields: object): void =>
      void lines.push([level, event, fields]);
  const logger = { info: write('info'), warn: write('warn') } as unknown as Logger;
  // The time does not pass: only the burst of lines remains.
  const audit = new Audit(logger, { ...systemClock, monotonicMs: () => 0 });
  const create = (name: string) => new Instance(parseView(exampleView({ name })), systemClock);
  return { lines, audit, web1: create('web1'), web2: create('web2') };
}

test('each request, refusal and failure of a guest is one line with its name', () => {
  const { lines, audit, web1 } = lab();
  audit.request(web1, 'GET', '/a', 200, 0);
  audit.refused(web1, null, 'HPE_INVALID_METHOD');
  audit.failed(web1, 'warn', 'http.broken', { path: '/b' });
  assert.deepEqual(lines, [
    ['info', 'http.request', { instance: 'web1', method: 'GET', path: '/a', status: 200 }],
    ['info', 'http.refused', { instance: 'web1', status: null, reason: 'HPE_INVALID_METHOD' }],
    ['warn', 'http.broken', { instance: 'web1', path: '/b' }],
  ]);
});

test('a long path is cut in the log', () => {
  const { lines, audit, web1 } = lab();
  for (const length of [256, 257]) audit.request(web1, 'GET', 'x'.repeat(length), 200, 0);
  const paths = lines.map(([, , fields]) => ('path' in fields ? String(fields.path) : ''));
  assert.deepEqual(paths, ['x'.repeat(256), `${'x'.repeat(256)}…`]);
});

for (const [what, act] of [
  ['requests', (audit, of, nowMs) => audit.request(of, 'GET', '/', 200, nowMs)],
  ['refusals', (audit, of) => audit.refused(of, null, 'HPE')],
  ['failures', (audit, of) => audit.failed(of, 'warn', 'http.broken', {})],
] as const satisfies readonly (readonly [
  string,
  (audit: Audit, of: Instance, nowMs: number) => void,
])[]) {
  test(`${what} beyond the share of a guest are counted, and others keep their lines`, () => {
    const { lines, audit, web1, web2 } = lab();
    for (let n = 0; n < AUDIT_LINES_AT_ONCE + 7; n++) act(audit, web1, 0);
    assert.equal(lines.length, AUDIT_LINES_AT_ONCE);
    act(audit, web2, 0);
    assert.equal(lines.length, AUDIT_LINES_AT_ONCE + 1);
    audit.request(web1, 'GET', '/', 200, 1000);
    assert.deepEqual(lines.at(-2), ['info', 'http.more', { instance: 'web1', requests: 7 }]);
  });
}
