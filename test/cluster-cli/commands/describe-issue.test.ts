import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeIssue, describeUnusable } from '../../../cluster-cli/commands/describe-issue.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { findUnusable } from '#shared/contract/unusable-text.ts';

const shutdown = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1' };

test('a parameter that is called as a member of every object is named as it is called', () => {
  const input = { ...shutdown, osParameters: { constructor: 'x'.repeat(70_000) } };
  const [issue] = opcode.safeParse(input).error?.issues ?? [];
  assert.ok(issue);
  assert.match(describeIssue(issue, input), /^--os-parameters constructor: /);
});

test('text that is refused wherever it stands is named by its option, the value not at all', () => {
  const described = (input: object): string => {
    const unusable = findUnusable({ ...shutdown, ...input });
    assert.ok(unusable);
    return describeUnusable(unusable);
  };
  assert.equal(
    described({ metadata: { role: 'k3y\0' } }),
    '--metadata role: contains a NUL character',
  );
  assert.equal(
    described({ osParametersSecret: JSON.parse('{"__proto__": "k3y"}') as object }),
    "--os-parameters-secret: a name must not be '__proto__'",
  );
});
