import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAgentTags, wrongAgentTag } from '#shared/contract/agent-tags.ts';

const TYPE = 'rs_agent:type=right_link_lite';
const URL_TAG = 'rs_agent:mime_shellscript=https://example.com/install.sh?v=1';

test('without the type the other tags say nothing', () => {
  assert.equal(parseAgentTags([URL_TAG, 'rs_agent:type=right_link', 'web']), null);
  assert.deepEqual(parseAgentTags([TYPE]), {
    ...{ identity: 'shellscript', shellscriptUrl: null, includeUrl: null },
  });
  assert.deepEqual(
    parseAgentTags([
      ...[URL_TAG, TYPE, 'rs_agent:mime_identity=write_file'],
      'rs_agent:mime_include_url=http://[fe80::1]/i',
    ]),
    {
      identity: 'write_file',
      shellscriptUrl: 'https://example.com/install.sh?v=1',
      includeUrl: 'http://[fe80::1]/i',
    },
  );
});

test('a tag that cannot mean anything is named, and counts for nothing', () => {
  for (const [tags, why] of [
    [
      ['rs_agent:mime_identity=file'],
      /mime_identity=file has an invalid value: expected shellscript or write_file$/,
    ],
    [['rs_agent:mime_include_url='], /expected an http or https URL$/],
    [['rs_agent:mime_include_url=ftp://x/'], /an http or https URL$/],
    [['rs_agent:mime_include_url=http://'], /an http or https URL$/],
    [['rs_agent:mime_shellscript=http://x/a b'], /an http or https URL$/],
    [['rs_agent:mime_shellscript=http://x/\n#!/bin/sh'], /an http or https URL$/],
    [[URL_TAG, 'rs_agent:mime_shellscript=http://x/'], /occurs 2 times$/],
  ] as const)
    assert.match(wrongAgentTag(tags) ?? '', why);
  assert.equal(wrongAgentTag([URL_TAG, TYPE, 'rs_agent:http_proxy=x', 'rs_agent:type=y']), null);
  const { shellscriptUrl } =
    parseAgentTags([TYPE, 'rs_agent:mime_shellscript=http://x/a\nb']) ?? {};
  assert.equal(shellscriptUrl, null);
});
