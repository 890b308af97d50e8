import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refuseOversized } from '../../../../noded/instances/view/refuse-oversized.ts';

const host = { memoryMiB: 8192, cpus: 2 };

test('memory and vcpus that the node can never run are refused with the largest that it can', () => {
  refuseOversized({ memoryMiB: 8192, vcpus: 8 }, undefined, host);
  for (const [asked, hint] of [
    [{ memoryMiB: 8193, vcpus: 1 }, 'Give less: -B memory=8192M'],
    [{ memoryMiB: 512, vcpus: 9 }, 'Give less: -B vcpus=8'],
  ] as const)
    assert.throws(() => refuseOversized(asked, undefined, host), { code: 'VALIDATION', hint });
});

test('an instance of a node that lost memory can be changed, but not grown', () => {
  const former = { memoryMiB: 16_384, vcpus: 16 };
  refuseOversized(former, former, host);
  refuseOversized({ memoryMiB: 512, vcpus: 16 }, former, host);
  assert.throws(() => refuseOversized({ ...former, vcpus: 17 }, former, host), {
    code: 'VALIDATION',
  });
});
