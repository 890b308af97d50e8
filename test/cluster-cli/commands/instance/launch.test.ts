import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { chooseDisk, chooseMachine } from '../../../../cluster-cli/commands/instance/launch.ts';

type Chosen = Parameters<typeof chooseMachine>;
const NO_OPTIONS = { nics: true };

for (const [what, options, own, launchDefaults, net] of [
  ['the built-in NIC', {}, {}, undefined, ['0:mode=user']],
  ['the NIC of the cluster', {}, {}, { net: 'network=lan' }, ['0:network=lan']],
  ["the user's NIC", {}, { net: 'link=br1' }, { net: 'network=lan' }, ['0:link=br1']],
  ['the NIC of an option', { net: ['0:link=br2'] }, { net: 'link=br1' }, {}, ['0:link=br2']],
  ['no NIC by an option', { nics: false }, { net: 'link=br1' }, {}, []],
  ["no NIC by the user's setting", {}, { net: 'no-nics' }, {}, []],
  ['no NIC by the setting of the cluster', {}, {}, { net: 'none' }, []],
  ['a NIC although the cluster has none', {}, { net: 'link=br1' }, { net: 'none' }, ['0:link=br1']],
] as const) {
  test(`a launched instance has ${what}`, () => {
    const given = { ...NO_OPTIONS, ...options } as unknown as Chosen[0];
    const cluster = (launchDefaults === undefined ? {} : { launchDefaults }) as Chosen[2];
    assert.deepEqual(chooseMachine(given, own as Chosen[1], cluster).net, net);
  });
}

for (const [what, given, own, launchDefaults, expected] of [
  ['of no setting', [], {}, {}, []],
  ['of the cluster', [], {}, { memoryMiB: 512, vcpus: 2 }, ['memory=512M', 'vcpus=2']],
  [
    'of the user',
    [],
    { memory: '2G', vcpus: 4 },
    { memoryMiB: 512, vcpus: 2 },
    ['memory=2G', 'vcpus=4'],
  ],
  ['of an option, last', ['memory=1G'], { memory: '2G' }, {}, ['memory=2G', 'memory=1G']],
] as const) {
  test(`a launched instance has the memory and processors ${what}`, () => {
    const options = { ...NO_OPTIONS, backendParameters: given } as unknown as Chosen[0];
    const cluster = { launchDefaults } as Chosen[2];
    const { backendParameters } = chooseMachine(options, own, cluster);
    assert.deepEqual(backendParameters, expected);
  });
}

for (const [what, own, launchDefaults, least, expected] of [
  ['the built-in size', {}, undefined, undefined, [10 * GIB, 10 * GIB]],
  ['the size of the cluster', {}, { diskBytes: 5 * GIB }, null, [5 * GIB, 5 * GIB]],
  ["the user's size", { size: '7G' }, { diskBytes: 5 * GIB }, GIB, [7 * GIB, 7 * GIB]],
  ['the size that the image needs', { size: '1G' }, {}, 3 * GIB, [GIB, 3 * GIB]],
  ['whole MiB', { size: '1G' }, {}, GIB + 1, [GIB, GIB + MIB]],
] as const) {
  test(`the disk of a launched instance has ${what}`, () => {
    const cluster = (launchDefaults === undefined ? {} : { launchDefaults }) as Chosen[2];
    const { defaultBytes, sizeBytes } = chooseDisk(own, cluster, least);
    assert.deepEqual([defaultBytes, sizeBytes], expected);
  });
}

test("a mistake in the user's size names the file", () => {
  assert.throws(() => chooseDisk({ size: 'big' }, {}), /size of ~\/\.config\/gnt\/config\.yaml/);
});
