import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGroups, parseVolumes } from '../../../../noded/storage/drivers/lvm/parse-report.ts';
import { findOwn } from '../../../../noded/storage/drivers/volumes/volume-names.ts';

/** Output of LVM 2.03.16 in Debian 12. */
const VOLUMES = `  {
      "report": [
          {
              "lv": [
                  {"vg_name":"gnttestvg", "vg_uuid":"Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4", "lv_name":"00000010-0000-4000-8000-000000000000.next-00000003-0000-4000-8000-000000000000", "lv_size":"33554432", "lv_tags":"gnt:dirty-from=16777216,gnt:instance=00000001-0000-4000-8000-000000000000:Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4", "lv_active":"active", "origin":"", "lv_attr":"-wi-a-----", "pool_lv":"", "data_percent":"", "metadata_percent":""},
                  {"vg_name":"gnttestvg", "vg_uuid":"Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4", "lv_name":"precious", "lv_size":"8388608", "lv_tags":"", "lv_active":"", "origin":"", "lv_attr":"-wi-------", "pool_lv":"", "data_percent":"", "metadata_percent":""}
              ]
          }
      ]
  }
`;
const GROUPS = `  {
      "report": [
          {
              "vg": [
                  {"vg_name":"gnttestvg", "vg_uuid":"Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4", "vg_size":"62914560", "vg_free":"29360128", "vg_extent_size":"4194304"}
              ]
          }
      ]
  }
`;

test('reports of LVM are read, and none of them is empty', () => {
  assert.deepEqual(
    parseVolumes(VOLUMES).map(({ name, sizeBytes, isActive }) => [
      name.length,
      sizeBytes,
      isActive,
    ]),
    [
      [78, 33554432, true],
      [8, 8388608, false],
    ],
  );
  assert.deepEqual(parseGroups(GROUPS), [
    {
      ...{ name: 'gnttestvg', uuid: 'Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4' },
      ...{ sizeBytes: 62914560, freeBytes: 29360128, extentBytes: 4194304 },
    },
  ]);
  assert.deepEqual(parseVolumes('{"report":[{"lv":[]}]}'), []);
  assert.throws(() => parseVolumes('{"report":[{"vg":[]}]}'));
});

test('a volume is ours by its name and its tag together', () => {
  const [own, precious] = parseVolumes(VOLUMES);
  assert.ok(own !== undefined && precious !== undefined);
  assert.deepEqual(
    findOwn([own, precious]).map(({ instance, disk, state, dirtyFromBytes }) => ({
      ...{ instance: instance.slice(0, 8), disk: disk.slice(0, 8), state, dirtyFromBytes },
    })),
    [
      {
        ...{ instance: '00000001', disk: '00000010', dirtyFromBytes: 16777216 },
        state: { kind: 'next', installation: '00000003-0000-4000-8000-000000000000' },
      },
    ],
  );
  assert.deepEqual(findOwn([{ ...own, tags: [] }]), []);
  assert.deepEqual(
    findOwn([
      { ...own, name: 'root' },
      { ...own, name: `${own.name}x` },
    ]),
    [],
  );
});
