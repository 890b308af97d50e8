import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode, type OpcodeInput } from '#shared/contract/opcode.ts';
import { redactOpcode } from '#shared/contract/redact-opcode.ts';

const redact = (input: OpcodeInput): Record<string, unknown> => redactOpcode(opcode.parse(input));
const document = Buffer.from('#cloud-config').toString('base64');

test('names of parameters stay, their private and secret values go', () => {
  const shown = redact({
    opcode: 'INSTANCE_CREATE',
    name: 'web1',
    osParameters: { dhcp: 'yes' },
    osParametersPrivate: { key: 'PRIVATE' },
    osParametersSecret: { rootpw: 'SECRET' },
  });
  assert.deepEqual(shown['osParameters'], { dhcp: 'yes' });
  assert.deepEqual(shown['osParametersPrivate'], { key: '<redacted>' });
  assert.deepEqual(shown['osParametersSecret'], { rootpw: '<redacted>' });
});

test("the package's user and password, and all documents, go", () => {
  const shown = redact({
    opcode: 'INSTANCE_CREATE',
    name: 'web1',
    personalizationUser: 'USER',
    personalizationPassword: 'PASSWORD',
    userData: document,
    vendorData: document,
    networkConfig: document,
  });
  for (const key of [
    'personalizationUser',
    'personalizationPassword',
    'userData',
    'vendorData',
    'networkConfig',
  ])
    assert.equal(shown[key], '<redacted>', key);
});

test('of hooks their names stay', () => {
  const hooks = [{ name: 'a.yaml', content: document }];
  const shown = redact({ opcode: 'INSTANCE_CREATE', name: 'web1', hooks });
  assert.deepEqual(shown['hooks'], [{ name: 'a.yaml', content: '<redacted>' }]);
});

test('what was not given is not shown as redacted, and a deletion is shown as one', () => {
  const shown = redact({ opcode: 'INSTANCE_SET_PARAMS', name: 'web1', userData: null });
  assert.equal(shown['userData'], null);
  assert.ok(!('vendorData' in shown));
});

test('every opcode that takes private or secret values is redacted', () => {
  const inputs: OpcodeInput[] = [
    { opcode: 'INSTANCE_REINSTALL', name: 'web1', osParametersSecret: { a: 'VALUE' } },
    { opcode: 'INSTANCE_SET_PARAMS', name: 'web1', osParametersSecret: { a: 'VALUE' } },
    { opcode: 'INSTANCE_STARTUP', name: 'web1', osParametersSecret: { a: 'VALUE' } },
    { opcode: 'OS_SET_PARAMS', name: 'debian', osParametersPrivate: { a: 'VALUE' } },
  ];
  for (const input of inputs)
    assert.ok(!JSON.stringify(redact(input)).includes('VALUE'), input.opcode);
});

test('redacting does not change the opcode that is run', () => {
  const full = opcode.parse({
    opcode: 'INSTANCE_STARTUP',
    name: 'web1',
    osParametersSecret: { a: 'VALUE' },
  });
  redactOpcode(full);
  assert.ok(JSON.stringify(full).includes('VALUE'));
});
