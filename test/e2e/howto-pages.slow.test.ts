import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { OwnHost } from './support/own-host.ts';
import { readPage, walkPage } from './support/walk-page.ts';

/**
 * One daemon for all pages. Each page gets a stopped instance web1.example.com without an
 * installed system; pages that need more say so with `no-run`.
 */
const projectDir = join(import.meta.dirname, '../..');
const pages = globSync('docs/howto/*.md', { cwd: projectDir }).toSorted();
/** The reader's image in the pages. */
const IMAGE = '/srv/images/app.raw';
const PREPARE = [
  'mkdir page && cd page',
  `gnt-instance add --no-install --os-image ${IMAGE} -s 64M -B memory=64M --no-nics -C yes web1.example.com`,
];
const CLEAN = [
  'for name in $(gnt-instance list --no-headers -o name); do gnt-instance remove -f $name; done',
  // A failed page leaves its settings, which must not affect the next page.
  'cd .. && rm -r page && rm -rf /etc/gnt/hooks',
];

let host: OwnHost;
before(async () => {
  host = await OwnHost.boot('node1.example.com');
  await must(`mkdir /srv/images && truncate -s 1M ${IMAGE}`);
  await must('systemctl start gnt-noded');
});
after(async () => {
  await must('systemctl stop gnt-noded');
  await host[Symbol.asyncDispose]();
});

async function must(command: string): Promise<void> {
  const { status, lines } = await host.run(command);
  assert.equal(status, 0, `${command}\n${lines.join('\n')}`);
}

for (const page of pages) {
  test(`the commands of ${page} work as shown`, async (t) => {
    const steps = await readPage(page);
    if (steps.length === 0) return;
    for (const command of PREPARE) await must(command);
    try {
      await walkPage(steps, () => host, { tell: (command) => t.diagnostic(command) });
    } finally {
      for (const command of CLEAN) await must(command);
    }
  });
}
