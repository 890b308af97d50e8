import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { openBridgedTap } from '../../../../noded/net/channel/bridged-tap.ts';

const bridge = `gntb${process.pid}`;

function bridgeMac(): string {
  return readFileSync(`/sys/class/net/${bridge}/address`, 'utf8').trim();
}

describe('a bridged TAP', () => {
  before(() => {
    execFileSync('ip', ['link', 'add', bridge, 'address', '02:00:00:00:00:01', 'type', 'bridge']);
    execFileSync('ip', ['link', 'set', bridge, 'up']);
  });
  after(() => {
    execFileSync('ip', ['link', 'del', bridge]);
  });

  test('is a port of its bridge, up, without an IP address, and removed when its descriptor closes', async () => {
    const before = bridgeMac();
    const tap = await openBridgedTap({ link: bridge });
    try {
      const shown = execFileSync('ip', ['addr', 'show', 'dev', tap.device], { encoding: 'utf8' });
      assert.match(shown, new RegExp(`,UP.* master ${bridge} `));
      assert.match(shown, /link\/ether fe:/);
      assert.doesNotMatch(shown, /inet/);
      assert.equal(bridgeMac(), before);
    } finally {
      tap.close();
      tap.close();
    }
    assert.equal(existsSync(`/sys/class/net/${tap.device}`), false);
  });

  test('of one MAC learns no other, and gets the frames for that one only', async () => {
    const mac = '52:54:00:00:00:77';
    const tap = await openBridgedTap({ link: bridge, onlyMac: mac });
    try {
      for (const flag of ['learning', 'unicast_flood']) {
        const value = readFileSync(`/sys/class/net/${tap.device}/brport/${flag}`, 'utf8');
        assert.equal(value.trim(), '0', flag);
      }
      const known = execFileSync('bridge', ['fdb', 'show', 'dev', tap.device], {
        encoding: 'utf8',
      });
      assert.match(known, new RegExp(`^${mac} .*static`, 'm'));
    } finally {
      tap.close();
    }
  });

  test('is refused on a link that is not a bridge', async () => {
    for (const link of ['lo', 'gntmissing', '../../etc', '', 'a name that is too long']) {
      await assert.rejects(openBridgedTap({ link }), (error: unknown) => {
        assert.ok(error instanceof Error);
        assert.equal('code' in error && error.code, 'HOST_PREREQUISITE');
        assert.ok(error.message.includes(JSON.stringify(link)));
        return true;
      });
    }
  });
});
