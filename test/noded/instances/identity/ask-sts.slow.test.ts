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

/** Hangs, or sends a byte per second, so that no limit of silence ends it. */
const stall: Misbehaviour = ({ url }, response) => {
  if (url === '/hang') return;
  response.writeHead(200);
  const timer = setInterval(() => response.write(' '), 1000);
  response.on('close', () => clearInterval(timer));
};

test('an STS that hangs or sends a byte per second is abandoned after ten seconds', async () => {
  cloud.misbehaviour = stall;
  const startedAtMs = performance.now();
  const ask = async (path: string): Promise<void> => {
    const request = { url: `${cloud.url}${path}`, body: 'a=b', headers: {}, secrets: [] };
    await assert.rejects(
      askSts({ ...request, certificateAuthority: cloud.certificate }, () => ({})),
      (error: unknown) => error instanceof ExchangeFailure && /timeout/.test(error.message),
    );
  };
  await Promise.all(['/hang', '/drip'].map(ask));
  const tookMs = performance.now() - startedAtMs;
  assert.ok(tookMs > 9000 && tookMs < 20_000, `${tookMs} ms`);
});
