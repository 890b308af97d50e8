import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../../lab/fast-check.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { describeInstance } from '../../../../noded/instances/backup/describe-export.ts';
import {
  formatExportRecord,
  keepRecord,
  parseExportRecord,
} from '../../../../noded/instances/backup/export-record.ts';
import { completeFromExport } from '../../../../noded/instances/backup/plan-import.ts';
import { createOpcode } from '../../support/opcodes.ts';
import { instanceRecord } from '../../support/records.ts';
import { GANETI_EXPORT, OUR_EXPORT } from '../../support/export-samples.ts';
import { formatIni, parseIni } from '../../../../noded/instances/backup/ini.ts';

const record = OUR_EXPORT;

test('what an export says is read back as it was', () => {
  assert.deepEqual(parseExportRecord(formatExportRecord(record)), record);
});

test('a NIC and a disk that came while the machine ran are in the file like any other', () => {
  const instance = instanceRecord({ nics: [{}], disks: [{ sizeBytes: 2 ** 20 }] });
  const plugged = {
    ...instance,
    nics: instance.nics.map((nic) => ({ ...nic, port: 0 })),
    disks: instance.disks.map((disk) => ({ ...disk, port: 1 })),
  };
  const file = (described: typeof instance): string => {
    const about = { node: 'node1.example.com', createdAtMs: 0, dumpOf: String };
    return formatExportRecord({ ...describeInstance(described, about), whole: null });
  };
  assert.equal(file(plugged), file(instance));
});

test('refuses two parts of a machine in one port', () => {
  const instance = instanceRecord({ nics: [{}], disks: [{ sizeBytes: 2 ** 20 }] });
  const read = (diskPort: number) => {
    const kept = keepRecord({
      ...{ ...instance, installState: 'installed' },
      nics: instance.nics.map((nic) => ({ ...nic, port: 0 })),
      disks: instance.disks.map((disk) => ({ ...disk, port: diskPort })),
    });
    const whole = { instance: kept, takenBytes: 0, variables: null };
    return parseExportRecord(formatExportRecord({ ...record, whole })).whole;
  };
  assert.equal(read(1)?.instance.disks[0]?.port, 1);
  assert.throws(() => read(0), /use the same port/);
});

test('an import has the profiles of the export, or those that are given, or none', () => {
  const exported = { record, dumps: [], path: '/srv/export/web1' };
  const imported = (given: object) =>
    completeFromExport(createOpcode({ name: 'web2', ...given }), exported).profiles;
  assert.deepEqual(imported({}), ['web', 'base']);
  assert.deepEqual(imported({ profiles: ['other'] }), ['other']);
  assert.deepEqual(imported({ profiles: [] }), []);
  assert.deepEqual(parseExportRecord(GANETI_EXPORT).profiles, []);
});

test('an import takes given NICs; exported ones keep their MAC under the old name only', () => {
  const exported = { record, dumps: [], path: '/srv/export/web1' };
  const nicsOf = (given: Parameters<typeof createOpcode>[0]) =>
    completeFromExport(createOpcode(given), exported).nics;
  const [nic] = record.nics;
  assert.deepEqual(nicsOf({ name: record.name }), [
    { mac: nic?.mac, mode: 'bridged', link: 'br0' },
  ]);
  assert.deepEqual(nicsOf({ name: 'web2' }), [{ mac: 'auto', mode: 'bridged', link: 'br0' }]);
  const given = [{ mac: 'auto' as const, mode: 'user' as const }];
  assert.deepEqual(nicsOf({ name: record.name, nics: given }), given);
});

test('an import is installed, and has the tags that are given, else those of the export', () => {
  const imported = (given: Parameters<typeof createOpcode>[0]) =>
    completeFromExport(createOpcode(given), { record, dumps: [], path: '/srv/export' });
  assert.equal(imported({ install: false, start: false }).install, true);
  assert.deepEqual(imported({}).tags, record.tags);
  assert.deepEqual(imported({ tags: ['new'] }).tags, ['new']);
});

test('an import refuses dumps without a disk and NICs of an unknown mode', () => {
  const path = '/srv/export/web1';
  const dumps = [{ disk: 1, path: '/srv/dump', sizeBytes: 1 }];
  const one = createOpcode({ disks: [{ sizeBytes: 512 }] });
  assert.throws(() => completeFromExport(one, { record, dumps, path }), {
    code: 'EXPORT_INVALID',
    message: `the export in ${path} has a dump of disk 1, but the instance gets 1 disk(s)`,
  });
  const nics = record.nics.map((nic) => ({ ...nic, mode: 'openvswitch' }));
  const odd = { record: { ...record, nics }, dumps: [], path };
  assert.throws(() => completeFromExport(createOpcode(), odd), { code: 'VALIDATION' });
});

test('an import leaves NICs confined that the exported instance had confined', () => {
  const reach = 'public';
  const nics = [
    { mode: 'user', reach } as const,
    { networkName: 'lan', ip: '10.9.0.5', reach } as const,
    {},
  ];
  const about = { node: 'node1.example.com', createdAtMs: 0, dumpOf: String };
  const described = describeInstance(instanceRecord({ osType: 'debian', nics }), about);
  const exported = parseExportRecord(formatExportRecord({ ...described, whole: null }));
  const imported = completeFromExport(createOpcode(), { record: exported, dumps: [], path: '/' });
  assert.deepEqual(
    imported.nics.map((nic) => nic.reach),
    [reach, reach, undefined],
  );
});

test('line ends and separators of any kind in a parameter come back', () => {
  const osParameters = { motd: 'one\rtwo\r\n three\u2028four\u2029' };
  const written = formatExportRecord({ ...record, osParameters });
  assert.deepEqual(parseExportRecord(written).osParameters, osParameters);
});

test("reads what Ganeti's FinalizeExport writes", () => {
  const read = parseExportRecord(GANETI_EXPORT);
  assert.deepEqual(read.beparams, { memoryMiB: 1024, vcpus: 2 });
  assert.deepEqual(read.disks, [
    { name: null, sizeBytes: 10 * 1024 ** 3, dump: '0a1b2c3d-1111-2222-3333-444455556666' },
  ]);
  assert.deepEqual(read.osParameters, { dhcp: 'yes' });
});

for (const [what, change] of [
  ['a dump outside of its directory', ['disk0.snap', '../../etc/shadow']],
  ['a dump that is a path', ['disk0.snap', '/etc/shadow']],
  ['more disks than there can be', ['disk_count = 2', 'disk_count = 20000000']],
  ['a profile that is a path', ['profiles = web', 'profiles = ../web']],
  ['another version', ['version = 0', 'version = 9']],
  ['a name that is a path', ['name = web1.example.com', 'name = ../web1']],
  ['a line that is neither', ['[backend]', 'what is this']],
] as const) {
  test(`refuses ${what}`, () => {
    const [from, to] = change;
    const text = formatExportRecord(record).replace(from, to);
    assert.notEqual(text, formatExportRecord(record));
    assert.throws(
      () => parseExportRecord(text),
      (error) => isAppError(error, 'EXPORT_INVALID'),
    );
  });
}

test('any value comes back from the file format', () => {
  // Python's parser strips spaces at the ends of a line too.
  const line = fc.string({ unit: 'grapheme-ascii' }).map((text) => text.trim());
  const value = fc.array(line, { minLength: 1, maxLength: 4 }).map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(
      fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_-]{0,20}$/), value, { noNullPrototype: true }),
      (values) => {
        assert.deepEqual(parseIni(formatIni({ os: values }))['os'] ?? {}, values);
      },
    ),
  );
});
