import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import {
  formatExportRecord,
  parseExportRecord,
} from '../../../../noded/instances/backup/export-record.ts';
import { GANETI_EXPORT, OUR_EXPORT } from '../../support/export-samples.ts';

/** Ganeti's parser is a ConfigParser of Python, which interpolates the values that it returns. */
const READ = `import configparser, json, sys
parser = configparser.ConfigParser()
parser.read_file(sys.stdin)
sections = 'instance', 'hypervisor', 'backend', 'os', 'os_private'
print(json.dumps({name: dict(parser.items(name)) for name in sections}))`;

type Sections = Readonly<Record<string, Readonly<Record<string, string>>>>;
function readAsGaneti(text: string): Sections {
  // The program's own output.
  return JSON.parse(
    execFileSync('python3', ['-c', READ], { input: text, encoding: 'utf8' }),
  ) as Sections;
}

test('Ganeti reads memory, parameters with percent signs, and missing values of our exports', () => {
  const network = {
    ...{ addresses: ['192.0.2.7/24'], gateways: ['192.0.2.1'], nameservers: [] },
    ...{ search: [], routes: [], mtu: null },
  };
  const nics = OUR_EXPORT.nics.map((nic) => ({ ...nic, network }));
  const text = formatExportRecord({ ...OUR_EXPORT, nics });
  const { instance = {}, hypervisor, backend, os_private: hidden } = readAsGaneti(text);
  assert.deepEqual(backend, { maxmem: '512', minmem: '512', vcpus: '2' });
  assert.deepEqual([hypervisor, hidden], [{}, { key: '100% [sure]; #1' }]);
  // Ganeti takes other texts for the address and the name of a network.
  assert.deepEqual([instance['nic0_ip'], instance['nic0_network']], ['None', 'None']);
  assert.deepEqual([instance['disk0_dump'], 'disk1_dump' in instance], ['disk0.snap', false]);
  assert.deepEqual(parseExportRecord(text).nics[0]?.network, network);
});

test('a NIC in a network of Ganeti, without a mode of its own, is bridged', () => {
  const text = GANETI_EXPORT.replace('nic0_network = None', 'nic0_network = 4a5b')
    .replace('nic0_mode = bridged', 'nic0_mode = None')
    .replace('dhcp = yes', 'share = 50%%');
  const { nics, osParameters } = parseExportRecord(text);
  assert.deepEqual([nics[0]?.mode, nics[0]?.network], ['bridged', null]);
  assert.deepEqual(osParameters, { share: '50%' });
});
