import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type StepFields, stepFields } from '../../../../appliance/agent/hooks/fields.ts';
import { orderSteps } from '../../../../appliance/agent/hooks/order.ts';

const step = (name: string, ...after: string[]): StepFields =>
  stepFields.parse({ name, after: after.map((id) => ({ name: id })) });

function order(...documents: readonly (readonly StepFields[])[]): string[] {
  const named = documents.map((steps, index) => ({
    file: `cluster/${index}.yaml`,
    name: `doc${index}`,
    steps,
  }));
  return orderSteps(named).map(({ fields }) => fields.name);
}

test('documents and their steps run in order', () => {
  assert.deepEqual(order([step('a'), step('b')], [], [step('c'), step('d')]), ['a', 'b', 'c', 'd']);
});

test('a step with after runs after the named step of a later document', () => {
  assert.deepEqual(order([step('late', 'doc1.second')], [step('first'), step('second')]), [
    'first',
    'second',
    'late',
  ]);
});

test('after may name steps of its own document and several at once', () => {
  assert.deepEqual(
    order([step('c', 'doc0.a', 'doc0.b'), step('a', 'doc0.b'), step('b', 'doc1.z')], [step('z')]),
    ['z', 'b', 'a', 'c'],
  );
});

test('unnamed steps are referred to by position, and steps with the same name by name and position', () => {
  assert.deepEqual(order([step('z', 'doc1.1')], [step('x'), step('')]), ['x', '', 'z']);
  assert.deepEqual(order([step('z', 'doc1.x.0')], [step('x'), step('x')]), ['x', 'z', 'x']);
});

test('an after with an unknown step is refused, with the known steps as a hint', () => {
  assert.throws(() => order([step('a', 'doc0.typo'), step('b')]), {
    code: 'HOOK_FAILED',
    message:
      "step 'a' of cluster/0.yaml must run after 'doc0.typo', but this stage has no such step",
    hint: 'The steps are doc0.a, doc0.b.',
  });
});

test('steps that wait for each other are refused by name', () => {
  assert.throws(() => order([step('a', 'doc0.b'), step('b', 'doc0.a')]), {
    code: 'HOOK_FAILED',
    message: 'steps depend on each other: doc0.a, doc0.b',
  });
});
