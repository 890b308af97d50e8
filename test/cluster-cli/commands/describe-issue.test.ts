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

test('a setting of identities is named by its own option', () => {
  const described = (identity: object): string => {
    const input = { opcode: 'CLUSTER_SET_PARAMS', identity };
    const [issue] = opcode.safeParse(input).error?.issues ?? [];
    assert.ok(issue);
    return describeIssue(issue, input);
  };
  assert.match(described({ policy: 'x' }), /^--identity: /);
  assert.match(described({ trustDomain: 'A' }), /^--identity-trust-domain: /);
  const roles = { web: 'admin' };
  assert.match(
    described({ aws: { sts: 'https://sts.example.com', roles } }),
    /^--identity-aws roles web: 'admin': not the ARN of a role/,
  );
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
