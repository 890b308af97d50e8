import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConfig } from '../../../metad/config/config.ts';

/** Options that `/etc/default/ganeti` passes to Ganeti's metadata daemon as METAD_ARGS. */
const METAD_ARGS = ['-f', '-d', '--syslog=only', '--no-user-checks', '-b', '127.0.0.1', '-p', '81'];

test('the options of METAD_ARGS are accepted, and -d sets the log level', () => {
  const config = parseConfig(['--ganeti', ...METAD_ARGS], '/');
  assert.ok(typeof config === 'object' && config.kind === 'ganeti');
  assert.deepEqual([config.bindAddress, config.port, config.logLevel], ['127.0.0.1', 81, 'debug']);
});

test('a hop limit is a number from 1 to 255, and the kernel’s by default', () => {
  const hopLimitOf = (...words: readonly string[]): unknown => {
    const config = parseConfig(['--ganeti', ...words], '/');
    return typeof config === 'object' && config.kind === 'ganeti' ? config.hopLimit : undefined;
  };
  assert.equal(hopLimitOf(), null);
  assert.equal(hopLimitOf('--hop-limit', '2'), 2);
  for (const wrong of ['0', '256', '-1', '1.5', 'one', ''])
    assert.throws(() => hopLimitOf(`--hop-limit=${wrong}`), { code: 'USAGE' }, wrong);
});

test('OS definitions are looked up in the directories of Ganeti, in their order', () => {
  const config = parseConfig(['--ganeti'], '/root');
  assert.ok(typeof config === 'object' && config.kind === 'ganeti');
  assert.deepEqual(config.osSearchPath, [
    '/root/srv/ganeti/os',
    '/root/usr/local/lib/ganeti/os',
    '/root/usr/lib/ganeti/os',
    '/root/usr/share/ganeti/os',
  ]);
});
