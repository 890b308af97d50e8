import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dialect, type Dialect } from '#shared/contract/primitives.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { renderEc2 } from '../../../metad/dialects/ec2.ts';
import { renderGaneti } from '../../../metad/dialects/ganeti.ts';
import { renderGce } from '../../../metad/dialects/gce.ts';
import { renderNocloud } from '../../../metad/dialects/nocloud.ts';
import { renderOpenstack } from '../../../metad/dialects/openstack.ts';
import { Site } from '../../../metad/dialects/site.ts';
import type { Tree } from '../../../metad/dialects/tree.ts';
import { ACTION_METHODS } from '../../../metad/http/actions.ts';
import { createGuestAgent } from '../../../metad/view/guest-agent.ts';
import { parseView, type ServedView } from '../../../metad/view/served-view.ts';
import { findGuestPath, GUEST_PATHS, type GuestPath } from '../../../scripts/docs/guest-paths.ts';
import { lifecycleOf, scriptOf } from '../../metad/support/lifecycle-fixture.ts';
import { bootingView, exampleView, installingView } from '../../metad/support/view-fixture.ts';

function viewOf(view: InstanceView): ServedView {
  return { ...parseView(view), guestAgent: createGuestAgent('AGENT\n', 'ENABLE\n@AGENT@\n') };
}

function withHooksAndMirror(view: InstanceView): InstanceView {
  const { install } = view;
  assert.ok(install);
  const plan = { ...install.plan, mirrors: ['debian'] };
  return { ...view, install: { ...install, plan, hooks: [] } };
}

const lists = { boot: [scriptOf('1-a', 'true')], operational: [], decommission: [] };
const ec2 = { document: '{}', signature: 'c2lnbmF0dXJl', pkcs7: 'cGtjczc=' };
const aws = { role: 'arn:aws:iam::123456789012:role/web' };
const RUNNING = viewOf(exampleView({ lifecycle: lifecycleOf({ lists }), identity: { ec2, aws } }));
const VIEWS = [RUNNING, viewOf(withHooksAndMirror(installingView())), viewOf(bootingView())];
const RENDERERS: Readonly<Record<Dialect, (view: ServedView) => ReadonlyMap<string, unknown>>> = {
  ganeti: renderGaneti,
  ec2: renderEc2,
  openstack: (view) => renderOpenstack(view, ''),
  nocloud: renderNocloud,
  gce: (view) =>
    filesOf(renderGce(view, new Map([['hostkeys', new Map([['ssh-ed25519', 'AAAA']])]]))),
};

function filesOf(tree: Tree): ReadonlyMap<string, unknown> {
  return new Map([...tree].filter(([, found]) => found.kind === 'content' && !found.isFolder));
}

const listed = dialect.options.flatMap((name) =>
  VIEWS.flatMap((view) => [...RENDERERS[name](view).keys()].map((path) => [name, path] as const)),
);
const unlisted = ([['ec2', 'meta-data/identity']] as const).filter(([, path]) => {
  const address = resolveAddress(`latest/${path}`);
  return address && new Site(RUNNING, { password: '' }).find(address) !== undefined;
});
const served = [...listed, ...unlisted];

test('every path that a guest can read has an entry in the reference', () => {
  const missing = served.filter(([name, path]) => findGuestPath(name, path) === undefined);
  assert.deepEqual(missing, []);
});

test('every path that a guest can send to has an entry in the reference', () => {
  const missing = [...ACTION_METHODS].flatMap(([key, methods]) => {
    const [name, path = ''] = key.split(' ');
    return methods
      .filter((method) => !findGuestPath(dialect.parse(name), path, method as GuestPath['method']))
      .map((method) => `${method} ${key}`);
  });
  assert.deepEqual(missing, []);
});

test('every entry of the reference is served by some instance', () => {
  const used = new Set(served.map(([name, path]) => findGuestPath(name, path)));
  const unused = dialect.options.flatMap((name) =>
    GUEST_PATHS[name]
      .filter((entry) => entry.method === undefined && !used.has(entry))
      .map(({ path }) => `${name} ${path}`),
  );
  assert.deepEqual(unused, []);
});
