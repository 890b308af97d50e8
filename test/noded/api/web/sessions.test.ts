import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sessions } from '../../../../noded/api/web/sessions.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const user = (name: string) => ({ name, role: 'write', scope: null }) as const;

function createSessions() {
  const clock = new ManualClock();
  return { clock, sessions: new Sessions(clock, { idleMs: 100, totalMs: 250 }) };
}

test('a session ends after a time without use, and with it its streams', () => {
  const { clock, sessions } = createSessions();
  const session = sessions.begin(user('alice'));
  clock.advance(99);
  assert.equal(sessions.find(session.id), session);
  clock.advance(1);
  sessions.endExpired();
  assert.equal(sessions.find(session.id), undefined);
  assert.equal(session.signal.aborted, true);
});

test('use prolongs a session, but not beyond its total time', () => {
  const { clock, sessions } = createSessions();
  const session = sessions.begin(user('alice'));
  for (const ms of [90, 90, 60]) {
    clock.advance(ms);
    sessions.use(session);
  }
  assert.equal(sessions.find(session.id), session);
  clock.advance(10);
  assert.equal(sessions.find(session.id), undefined);
});

test('a user with too many sessions loses the least recent one, and no other user does', () => {
  const { clock, sessions } = createSessions();
  const bobs = sessions.begin(user('bob'));
  clock.advance(1);
  const first = sessions.begin(user('alice'));
  clock.advance(1);
  for (let count = 0; count < 32; count += 1) sessions.begin(user('alice'));
  assert.equal(sessions.find(first.id), undefined);
  assert.equal(sessions.find(bobs.id), bobs);
});

test('the number of sessions is limited, and expired ones make room', () => {
  const { clock, sessions } = createSessions();
  for (let count = 0; count < 1000; count += 1) sessions.begin(user(`user${count}`));
  assert.throws(() => sessions.begin(user('late')), { code: 'TOO_MANY_LOGINS' });
  clock.advance(100);
  sessions.begin(user('late'));
});

test('a session ends when its user has lost rights', async () => {
  const { sessions } = createSessions();
  const [alice, bob] = [sessions.begin(user('alice')), sessions.begin(user('bob'))];
  await sessions.endUnless((session) => Promise.resolve(session.user.name !== 'bob'));
  assert.deepEqual([alice.signal.aborted, bob.signal.aborted], [false, true]);
});
