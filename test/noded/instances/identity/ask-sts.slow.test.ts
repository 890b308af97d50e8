import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExchangeFailure } from '../../../../noded/instances/identity/credential-cache.ts';
import { askSts } from '../../../../noded/instances/identity/ask-sts.ts';
import { type CloudLab, type Misbehaviour, startCloud } from '../../../lab/cloud-lab.ts';

let cloud: CloudLab;
before(async () => {
  cloud = await startCloud({ keys: () => Promise.resolve('{"keys":[]}'), issuer: 'https://i' });
});
after(() => cloud[Symbol.asyncDispose]());

/** Sends a byte per second, so that no limit of silence ends it. */
const DRIPS: Misbehaviour = (_, response) => {
  response.writeHead(200);
  const timer = setInterval(() => response.write(' '), 1000);
  response.on('close', () => clearInterval(timer));
};

for (const [name, misbehaviour] of [
  ['hangs', () => undefined],
  ['sends a byte per second', DRIPS],
] as const)
  test(`an STS that ${name} is abandoned after ten seconds`, { concurrency: true }, async () => {
    cloud.misbehaviour = misbehaviour;
    const startedAtMs = performance.now();
    const request = { url: cloud.url, body: 'a=b', headers: {}, secrets: [] };
    await assert.rejects(
      askSts({ ...request, certificateAuthority: cloud.certificate }, () => ({})),
      (error: unknown) => error instanceof ExchangeFailure && /timeout/.test(error.message),
    );
    const tookMs = performance.now() - startedAtMs;
    assert.ok(tookMs > 9000 && tookMs < 20_000, `${tookMs} ms`);
  });
