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
