import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { TOKEN, loadRecordings } from './support/request-recording.ts';
import type { RecordedRequest, RequestRecording } from './support/request-recording.ts';
import { exampleView, installingView } from './support/view-fixture.ts';

/**
 * Replays requests of real clients (test/metad/record-requests.ts) in their order and with their
 * headers.
 */

let lab: ChannelLab;
let guest: Guest;
let revision = 1;

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(exampleView().channel);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

async function replay({ view, requests }: RequestRecording): Promise<void> {
  revision++;
  assert.equal((await lab.put(exampleView({ ...view, revision }))).status, 204);
  let token = '';
  for (const request of requests) {
    const answer = await ask(request, token);
    const what = `${request.method} ${request.path}`;
    assert.equal(answer.status, request.status, what);
    if (request.path === '/latest/api/token') token = answer.body.toString();
    else if (request.path.includes('/meta-data/'))
      assert.equal(answer.body.length === 0, answer.status === 404, what);
  }
}

async function ask(
  { method, path, headers, body }: RecordedRequest,
  token: string,
): ReturnType<typeof askFromGuest> {
  const filled = Object.entries(headers).map(([name, value]) => [
    name,
    value === TOKEN ? token : value,
  ]);
  return await askFromGuest(guest.namespace, path, {
    method,
    headers: Object.fromEntries(filled) as Record<string, string>,
    body,
  });
}

for (const [name, recording] of await loadRecordings()) {
  test(`answers the recorded requests of ${name} as recorded`, async () => {
    assert.ok(recording.requests.length > 0);
    await replay(recording);
  });
}

test('answers a Kairos installation medium as recorded, and serves other user data while the appliance installs', async () => {
  const recording = (await loadRecordings()).get('kairos');
  assert.ok(recording);
  // The view of an installation, without Kairos' data.
  await replay({ ...recording, view: installingView() });
  const answer = await askFromGuest(guest.namespace, '/latest/user-data');
  assert.equal(answer.body.toString(), '#cloud-config\nlocale: false\n');
  const plan = await askFromGuest(guest.namespace, '/ganeti/latest/install/plan.json');
  assert.equal(plan.status, 200);
});
