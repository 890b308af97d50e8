import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packageRepositories } from '#shared/contract/boot-env.ts';
import { constantMembers, refusedMembers } from '../../../../noded/netboot/api-placeholders.ts';
import type { RenderInput } from '../../../../noded/netboot/render-input.ts';
import { newUse } from '../../../../noded/netboot/render-input.ts';
import { createRenderData } from '../../../../noded/netboot/render-data.ts';
import {
  GoFunction,
  isList,
  Struct,
  type Call,
  type Value,
} from '../../../../noded/netboot/template/values.ts';
import { bootTemplateMembers } from '../../../../scripts/docs/pages/boot-templates.ts';
import { address, baseUrl, envOf, mac, uuid } from '../../../noded/netboot/plan-fixture.ts';

const nothing = (): undefined => undefined;
const input: RenderInput = {
  machine: { name: 'web1.example.com', uuid, mac, address },
  ...{ baseUrl, bootEnv: envOf({}), opened: null, mirrorUrl: () => null },
  repositories: () =>
    packageRepositories.parse([{ tag: 'r', os: ['debian-12'], url: 'http://deb.example/' }]),
  params: { read: nothing, compose: nothing, has: () => false, listPublic: () => new Map() },
};
const data = createRenderData(input, newUse());
const call: Call = {
  spend: nothing,
  renderTemplate: () => '',
  renderText: () => '',
};

function structOf(value: Value | GoFunction | undefined): Struct {
  assert.ok(value instanceof Struct);
  return value;
}

function repository(): Struct {
  const repositories = data.members.get('MachineRepos');
  assert.ok(repositories instanceof GoFunction);
  const list = repositories.run(call, []);
  assert.ok(isList(list));
  return structOf(list[0]);
}

const env = structOf(data.members.get('Env'));
const structs: Readonly<Record<string, Struct>> = {
  '': data,
  Machine: structOf(data.members.get('Machine')),
  Env: env,
  'Env.OS': structOf(env.members.get('OS')),
  Repo: repository(),
};

test('the reference has exactly the members that templates can read', () => {
  assert.deepEqual(Object.keys(structs), Object.keys(bootTemplateMembers));
  for (const [name, struct] of Object.entries(structs))
    assert.deepEqual(
      [...struct.members.keys()].sort(),
      Object.keys(bootTemplateMembers[name] ?? {}).sort(),
      name,
    );
});

test('the reference marks the top-level members that are constant or refused', () => {
  const membersWith = (support: string): readonly string[] =>
    Object.entries(bootTemplateMembers[''] ?? {})
      .filter(([, [each]]) => each === support)
      .map(([name]) => name);
  const constants = Object.keys(constantMembers(baseUrl, new Set()));
  assert.deepEqual(membersWith('constant'), constants.sort());
  assert.deepEqual(membersWith('refused'), Object.keys(refusedMembers()).sort());
});
