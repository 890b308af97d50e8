import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerHeaders, requestHeaders } from '../../../../noded/net/relay/relay-headers.ts';

function named(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flat();
}

test('headers of the guest that servers trust, or that frame the body, stay behind', () => {
  const dropped = {
    ...{ Host: 'x', Authorization: 'x', Cookie: 'x', 'Proxy-Authorization': 'x', Proxy_X: 'x' },
    ...{
      'Content-Length': '1',
      'Transfer-Encoding': 'chunked',
      TE: 'x',
      Trailer: 'x',
      Upgrade: 'x',
    },
    ...{ 'X-Forwarded-Host': 'x', Forwarded: 'x', Via: 'x', 'X-Real-IP': 'x', Expect: 'x' },
    ...{ 'X-Original-URL': '/admin', 'X-HTTP-Method-Override': 'DELETE', 'Accept-Encoding': 'br' },
    ...{ 'X-Aws-Ec2-Metadata-Token': 'x', X_Api_Key: 'x', 'X-Bad': 'a\u0000b', 'Not a token': 'x' },
  };
  assert.deepEqual(requestHeaders(named(dropped), { kind: 'bearer' }), []);
  const kept = { accept: '*/*', 'if-match': '"1"', 'git-protocol': 'version=2', 'x-api-key': 'x' };
  assert.deepEqual(requestHeaders(named(kept), { kind: 'bearer' }), named(kept));
});

test('claims of a guest about the client, the method and the path stay behind', () => {
  const claims = [
    ...['x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'client-ip', 'cf-connecting-ip'],
    ...['x-http-method', 'x-method-override', 'x-rewrite-url', 'x-original-method'],
    ...['x-original-host', 'x-host', 'x-forwarded-for', 'x-gnt-offset', 'proxy-connection'],
    ...['metadata-flavor', 'x-aws-ec2-metadata-token-ttl-seconds', 'cookie2', 'keep-alive'],
  ];
  const given = claims.flatMap((name) => [name, 'x']);
  assert.deepEqual(requestHeaders([...given, 'accept', 'a'], { kind: 'bearer' }), ['accept', 'a']);
});

test('a guest cannot ask for parts of an answer, in which a credential would not be found', () => {
  const given = ['Range', 'bytes=0-6', 'If-Range', '"1"', 'accept', 'a'];
  assert.deepEqual(requestHeaders(given, { kind: 'bearer' }), ['accept', 'a']);
});

test('the header of the credential comes from the node alone', () => {
  const given = ['X-Api-Key', 'mine', 'x-api-key', 'again', 'X_API_KEY', 'other', 'accept', 'a'];
  assert.deepEqual(requestHeaders(given, { kind: 'header', name: 'x-api-key' }), ['accept', 'a']);
});

test('headers that Connection names are of one hop', () => {
  const given = ['Connection', 'close, X-One', 'x-one', '1', 'connection', 'x-two', 'X-Two', '2'];
  assert.deepEqual(requestHeaders([...given, 'b', '3'], { kind: 'bearer' }), ['b', '3']);
  assert.deepEqual(answerHeaders([...given, 'b', '3']), ['b', '3']);
});

test('a server sets no cookies of the node, and sends the guest nowhere', () => {
  const dropped = {
    ...{ 'Set-Cookie': 'x', 'WWW-Authenticate': 'Basic', 'Alt-Svc': 'x', Refresh: '0;url=x' },
    ...{ Location: 'x', 'Access-Control-Allow-Origin': '*', 'X-Gnt-File': '0 1' },
    ...{ 'Content-Length': '1', 'Transfer-Encoding': 'chunked', 'Keep-Alive': 'x' },
  };
  assert.deepEqual(answerHeaders(named(dropped)), []);
  const kept = { 'content-type': 'text/html', etag: '"1"', link: '<x>; rel=next', date: 'now' };
  assert.deepEqual(answerHeaders(named(kept)), named(kept));
});
