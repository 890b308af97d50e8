import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceView } from '#shared/contract/view.ts';
import { userData } from '../../../metad/dialects/user-data.ts';
import { vendorData } from '../../../metad/dialects/vendor-data.ts';
import { createGuestAgent } from '../../../metad/view/guest-agent.ts';
import { parseView, type ServedView } from '../../../metad/view/served-view.ts';
import { lifecycleOf, scriptOf } from '../support/lifecycle-fixture.ts';
import { exampleView, installingView } from '../support/view-fixture.ts';

const OWN = '#cloud-config\nlocale: C\n';
const TYPE = 'rs_agent:type=right_link_lite';
const lists = { boot: [scriptOf('01-all', 'true')], operational: [], decommission: [] };

function served(tags: readonly string[], view: Partial<InstanceView> = {}): ServedView {
  const base = { userData: Buffer.from(OWN).toString('base64'), lifecycle: lifecycleOf({ lists }) };
  const guestAgent = createGuestAgent('AGENT\n', 'ENABLE\n@AGENT@\n');
  return { ...parseView(exampleView({ ...base, tags: [...tags], ...view })), guestAgent };
}

/** Types of parts, with their names, in their order. */
function partsOf(document: Buffer): readonly string[] {
  return document
    .toString()
    .split('--GNTVENDORDATA\r\n')
    .slice(1)
    .map((part) => {
      const [, type = ''] = /^Content-Type: ([^;\r]+)/.exec(part) ?? [];
      return `${type} ${/filename="([^"]+)"/.exec(part)?.[1] ?? '-'}`;
    });
}

test('user data without a tag is served byte for byte', () => {
  const view = served(['rs_agent:mime_include_url=http://x/']);
  assert.equal(userData(view).toString(), OWN);
  assert.match(vendorData(view).toString(), /gnt-enable/);
});

test('tagged user data has identity, agent and the user’s own part, and vendor data has no agent', () => {
  const view = served([TYPE]);
  assert.deepEqual(partsOf(userData(view)), [
    ...['text/cloud-boothook rightscale-identity', 'text/cloud-boothook gnt-enable'],
    'text/cloud-config -',
  ]);
  assert.match(userData(view).toString(), /\nENABLE\nAGENT\nGNT_SCRIPT_END\n/);
  assert.doesNotMatch(vendorData(view).toString(), /gnt-enable|AGENT/);
  assert.deepEqual(partsOf(userData(served([TYPE], { userData: null }))).length, 2);
});

test('an identity written by cloud-config is the last part, and its lists are appended', () => {
  const text = userData(served([TYPE, 'rs_agent:mime_identity=write_file']));
  assert.deepEqual(partsOf(text), [
    ...['text/cloud-boothook gnt-enable', 'text/cloud-config -'],
    'text/cloud-config rightscale-identity',
  ]);
  assert.match(text.toString(), /X-Merge-Type: list\(append\)/);
  assert.match(text.toString(), /permissions: "0600"/);
});

test('a tag’s installer replaces the agent, and a quote in its URL is escaped', () => {
  const tags = [TYPE, "rs_agent:mime_shellscript=http://x/it's"];
  const text = userData(served(tags));
  assert.ok(text.toString().includes(`url='http://x/it'\\''s'\n`));
  assert.equal(partsOf(text)[1], 'text/cloud-boothook gnt-installer');
  const both = served([...tags, 'rs_agent:mime_include_url=http://y/']);
  assert.deepEqual(partsOf(userData(both)).slice(1, 3), [
    ...['text/cloud-boothook gnt-installer', 'text/x-include-url gnt-include'],
  ]);
  for (const view of [both, served(tags)])
    assert.doesNotMatch(
      `${userData(view).toString()}${vendorData(view).toString()}`,
      /AGENT|gnt-enable/,
    );
});

test('user data without run lists has an identity and no agent, and an installation’s user data is unchanged', () => {
  const bare = exampleView({ tags: [TYPE], userData: Buffer.from(OWN).toString('base64') });
  assert.deepEqual(partsOf(userData(parseView(bare))), [
    ...['text/cloud-boothook rightscale-identity', 'text/cloud-config -'],
  ]);
  const installing = installingView({
    tags: [TYPE, 'rs_agent:mime_include_url=http://y/'],
    userData: Buffer.from(OWN).toString('base64'),
  });
  assert.equal(userData(parseView(installing)).toString(), OWN);
});
