import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test, type TestContext } from 'node:test';
import type { LifecycleEvent, ViewLifecycle } from '#shared/contract/lifecycle.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { ChannelLab, type Guest } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { DOWNLOADERS, GuestSystem, SHELLS } from './support/guest-system.ts';
import { lifecycleOf, scriptOf } from './support/lifecycle-fixture.ts';
import { exampleView } from './support/view-fixture.ts';

/** The unmodified agent, with each shell and download program, against metad. */

const COMMAND = '33333333-3333-4333-8333-333333333333';
const CANCELLED = '44444444-4444-4444-8444-444444444444';
const AFTER = '66666666-6666-4666-8666-666666666666';
const KILLED = '77777777-7777-4777-8777-777777777777';
const LAST = '55555555-5555-4555-8555-555555555555';
/** Two request bodies, and a rest. */
const LINES = Array.from({ length: 9000 }, (_, at) => `line ${at + 10_000}\n`).join('');

const lists: ViewLifecycle['lists'] = {
  boot: [
    scriptOf('01-inputs', 'echo "$GREETING, $hostkey"; echo "$RS_ATTACH_DIR: $(cat "$RS_ATTACH_DIR/a file")"; echo "$RS_SELF_HREF"', null),
    scriptOf('02-long', 'pwd; i=10000; while [ $i -lt 19000 ]; do echo "line $i"; i=$((i + 1)); done', {}),
    scriptOf('03-forks', 'echo "only: ${GREETING-none}, $OWN"; sleep 1000 & exit 0', { OWN: { text: `it's "$(x)"\n` } }),
  ],
  operational: [
    scriptOf('01-fail', 'echo to stderr >&2; exit 7', null),
    scriptOf('02-endless', 'echo waiting; exec sleep 1000', null),
    scriptOf('04-kills', 'kill -9 "$PPID"; echo killed; exec sleep 1000', null),
    scriptOf('03-stubborn', 'trap "" TERM; echo waiting; while :; do sleep 1; done', null),
  ],
  decommission: [scriptOf('01-leave', 'echo "because of $DECOM_REASON"', null)],
}; // prettier-ignore

/** Returns the varying part of an event: `started boot/01-inputs`. */
function wordOf(event: LifecycleEvent): string {
  const { type } = event;
  if (type === 'started') return `${type} ${event.entry}`;
  if (type === 'finished') return `${type} ${event.entry} ${event.status}`;
  return type === 'decommissioning' ? `${type} ${event.kind}` : type;
}

function wordsOf(events: readonly MetadEvent[]): readonly string[] {
  return events.flatMap(({ event }) => (event.type === 'lifecycle' ? [wordOf(event.event)] : []));
}

function outputOf(events: readonly MetadEvent[], entry: string): string {
  return events
    .flatMap(({ event }) =>
      event.type === 'lifecycle-output' && event.entry === entry ? [event.text] : [],
    )
    .join('');
}

/** Asserts equality, and shows only the first difference. */
function assertLong(text: string, expected: string): void {
  let at = 0;
  while (at < expected.length && text[at] === expected[at]) at++;
  if (text !== expected)
    assert.fail(
      `${text.length} of ${expected.length} characters; at ${at}: ${JSON.stringify(text.slice(at - 20, at + 60))}`,
    );
}

describe('the guest’s agent', () => {
  let lab: ChannelLab;
  let guest: Guest;
  let revision = 1;
  const base = exampleView();

  before(async () => {
    lab = await ChannelLab.create();
    guest = await lab.addGuest(base.channel);
  });
  after(() => lab[Symbol.asyncDispose]());

  async function serve(lifecycle: ViewLifecycle, osParameters = base.osParameters): Promise<void> {
    revision += 1;
    const answer = await lab.put({ ...base, osParameters, revision, lifecycle });
    assert.equal(answer.status, 204, answer.body.toString());
  }

  async function wordsUntil(since: number, last: string): Promise<readonly MetadEvent[]> {
    return await eventsUntil(lab, since, (events) => wordsOf(events).includes(last));
  }

  async function lastSequence(): Promise<number> {
    const { body } = await lab.control('GET', '/v1/status');
    return (JSON.parse(body.toString()) as { lastSequence: number }).lastSequence;
  }

  /** Boots a guest with the files that `enable` installs. */
  async function bootGuest(
    t: TestContext,
    ...view: Parameters<typeof serve>
  ): Promise<GuestSystem> {
    const system = await GuestSystem.create(guest.namespace, { shell: 'dash', downloader: 'curl' });
    t.after(() => system[Symbol.asyncDispose]());
    // Events of the previous test must not count.
    await lab.control('DELETE', `/v1/instances/${base.uuid}`);
    await serve(...view);
    const path = `/v1/instances/${base.uuid}/tree/ganeti/latest/guest/enable`;
    await system.write('enable', (await lab.control('GET', path)).body.toString());
    await system.boot('sh /var/lib/enable');
    return system;
  }

  test('strands a boot whose list differs from the host’s, and does not run a script that the host lacks', async (t) => {
    const of = (second: string): ViewLifecycle => {
      const boot = [
        scriptOf('01-wait', 'until [ -e /var/lib/go ]; do sleep 0.1; done'),
        scriptOf(second, 'echo ran >/var/lib/ran'),
      ];
      return lifecycleOf({ lists: { ...lists, boot } });
    };
    const since = await lastSequence();
    const system = await bootGuest(t, of('02-old'));
    await wordsUntil(since, 'started boot/01-wait');
    await serve(of('02-new'));
    await system.write('go', '');
    assert.deepEqual(
      wordsOf(await wordsUntil(since, 'stranded')),
      // The refused second request also reported the end of the first script.
      ['booting', 'started boot/01-wait', 'stranded'],
      system.log,
    );
    assert.equal(await system.read('ran'), null);
  });

  test('runs scripts before the first that needs a lost secret, and names that secret', async (t) => {
    const boot = [
      scriptOf('01-base', 'echo "$PLAIN"', { PLAIN: { text: 'plain' } }),
      scriptOf('02-needs', 'echo ran', { PASSWORD: { parameter: 'rootpw' } }),
    ];
    const since = await lastSequence();
    const lost = { rootpw: { value: null, visibility: 'secret' as const } };
    const needing = lifecycleOf({ lists: { ...lists, boot } });
    const system = await bootGuest(t, needing, { ...base.osParameters, ...lost });
    const told = await wordsUntil(since, 'stranded');
    assert.deepEqual(
      wordsOf(told),
      [
        ...['booting', 'started boot/01-base', 'finished boot/01-base 0'],
        ...['started boot/02-needs', 'finished boot/02-needs 126', 'stranded'],
      ],
      system.log,
    );
    assert.equal(outputOf(told, 'boot/01-base'), 'plain\n');
    assert.match(
      outputOf(told, 'boot/02-needs'),
      /^the host has lost the secret OS parameters rootpw: .*\n$/,
    );
  });

  test('powers off for a reboot that is a stop and a start, and passes the reason to the decommission scripts', async (t) => {
    const one = { boot: [], operational: [], decommission: lists.decommission };
    const since = await lastSequence();
    const system = await bootGuest(t, lifecycleOf({ lists: one }));
    await wordsUntil(since, 'operational');
    const next = { do: 'stop', kind: 'reboot', entry: LAST } as const;
    await serve(lifecycleOf({ lists: one, state: 'operational', next }));
    const ended = await wordsUntil(since, 'decommissioned');
    assert.ok(wordsOf(ended).includes('decommissioning reboot'), system.log);
    assert.equal(outputOf(ended, 'decommission/01-leave'), 'because of reboot\n');
    await system.wentDown();
    assert.equal(await system.read('went-down'), 'poweroff\n');
  });

  test('ends a decommission list at its time limit, runs no later script, reports the timeout and powers off', async (t) => {
    const decommission = [
      scriptOf('01-hangs', 'trap "" TERM; echo waiting; while :; do sleep 1; done'),
      scriptOf('02-later', 'echo ran >/var/lib/ran'),
    ];
    const one = { boot: [], operational: [], decommission };
    const since = await lastSequence();
    const system = await bootGuest(t, lifecycleOf({ lists: one }));
    await wordsUntil(since, 'operational');
    const next = { do: 'stop', entry: LAST } as const;
    const state = { state: 'operational', decommissionTimeoutS: 2, next } as const;
    await serve(lifecycleOf({ lists: one, ...state }));
    const ended = await wordsUntil(since, 'decommissioned');
    assert.deepEqual(
      wordsOf(ended).slice(-3),
      ['started decommission/01-hangs', 'finished decommission/01-hangs 137', 'decommissioned'],
      system.log,
    );
    const last = ended.map(({ event }) => event).findLast((event) => event.type === 'lifecycle');
    assert.ok(last?.type === 'lifecycle' && last.event.type === 'decommissioned');
    assert.equal(last.event.timedOut, true);
    await system.wentDown();
    assert.equal(await system.read('went-down'), 'poweroff\n');
    assert.equal(await system.read('ran'), null);
  });

  test('leaves as many files after many runs as after one, and names a missing interpreter', async (t) => {
    const operational = [
      scriptOf('01-count', 'set -- /run/rightlink/*; echo "$# files"'),
      { ...scriptOf('02-python', ''), content: Buffer.from('#!/opt/no/python3 -u\n').toString('base64') },
      scriptOf('03-killed', 'kill -9 "$PPID"; exec sleep 1000'),
      scriptOf('04-account', 'env -i HOME="$HOME" USER="$USER" SHELL="$SHELL" sh -c \'echo "$HOME $USER $SHELL"\''),
    ]; // prettier-ignore
    const lists = { boot: [], operational, decommission: [] };
    const since = await lastSequence();
    const system = await bootGuest(t, lifecycleOf({ lists }));
    await wordsUntil(since, 'operational');
    const runOnce = async (script: string, status: number): Promise<string> => {
      const entry = randomUUID();
      const next = { do: 'run', entry, script } as const;
      await serve(lifecycleOf({ lists, state: 'operational', next }));
      await wordsUntil(since, `started ${entry}`);
      if (status === 143) await serve(lifecycleOf({ lists, state: 'operational' }));
      const told = await wordsUntil(since, `finished ${entry} ${status}`);
      return outputOf(told, entry);
    };
    assert.match(
      await runOnce('02-python', 127),
      /^rightlink: the guest has no interpreter '\/opt\/no\/python3' for 02-python\n$/,
    );
    assert.equal(await runOnce('04-account', 0), '/root root /bin/sh\n');
    // The agent itself writes some files once, such as the report for a killed worker.
    await runOnce('03-killed', 143);
    const few = await runOnce('01-count', 0);
    for (let count = 0; count < 3; count += 1) await runOnce('03-killed', 143);
    for (let count = 0; count < 4; count += 1) await runOnce('01-count', 0);
    assert.equal(await runOnce('01-count', 0), few, system.log);
  });

  test('a worker that ends late does not remove the variables of the next list', async (t) => {
    const boot = [
      scriptOf('01-wait', 'echo waiting; until [ -e /var/lib/go ]; do sleep 0.1; done'),
    ];
    const both = { boot, operational: [], decommission: lists.decommission };
    const since = await lastSequence();
    const system = await bootGuest(t, lifecycleOf({ lists: both }));
    await eventsUntil(lab, since, (events) => outputOf(events, 'boot/01-wait') !== '');
    // The agent removes these files when the next script starts to read its own, or after three
    // seconds without one.
    await system.delay('rm', [
      'case "$*" in *worker*)',
      '  tries=0; until [ -e /run/prepared ] || [ "$tries" -ge 30 ]; do sleep 0.1; tries=$((tries + 1)); done',
      '  real-rm "$@"; : >/run/removed; exit ;;',
      'esac',
    ]);
    await system.delay('mkfifo', [
      ': >/run/prepared',
      'until [ -e /run/removed ]; do sleep 0.1; done',
    ]);
    await system.write('go', '');
    await wordsUntil(since, 'operational');
    const next = { do: 'terminate', entry: LAST } as const;
    await serve(lifecycleOf({ lists: both, state: 'operational', next }));
    const ended = await wordsUntil(since, 'decommissioned');
    assert.ok(wordsOf(ended).includes('finished decommission/01-leave 0'), system.log);
  });

  test(
    'a worker whose last report is in flight removes no report of the next worker',
    { timeout: 60_000 },
    async (t) => {
      const one = { boot: [], operational: lists.operational, decommission: [] };
      const since = await lastSequence();
      const system = await bootGuest(
        t,
        lifecycleOf({
          lists: {
            ...one,
            boot: [scriptOf('01-wait', 'until [ -e /var/lib/go ]; do sleep 0.1; done')],
          },
        }),
      );
      await wordsUntil(since, 'started boot/01-wait');
      // Delays the answer to the last event, until the next event or for good.
      await system.delay('curl', [
        'case "$*" in *lifecycle/events*)',
        '  case "$(cat /run/rightlink/events)" in *\'"operational"\'*) mkdir /run/held 2>/dev/null && {',
        '    real-curl "$@"; code=$? tries=0',
        '    until [ -e /run/said ] || [ "$tries" -ge 30 ]; do sleep 0.1; tries=$((tries + 1)); done',
        '    exit "$code"; } ;;',
        '  esac ;;',
        'esac',
      ]);
      await system.delay('mv', [
        'case "$*:$(cat /run/rightlink/events)" in *.state*:*\'"started"\'*)',
        '  : >/run/said',
        '  until [ -e /run/ended ]; do sleep 0.1; done ;;',
        'esac',
      ]);
      await system.delay('rm', [
        'case "$*" in *worker*) real-rm "$@"; : >/run/ended; exit ;; esac',
      ]);
      await system.write('go', '');
      await wordsUntil(since, 'operational');
      const next = { do: 'run', entry: COMMAND, script: '01-fail' } as const;
      await serve(lifecycleOf({ lists: one, state: 'operational', next }));
      const told = await wordsUntil(since, `finished ${COMMAND} 7`);
      assert.ok(wordsOf(told).includes(`started ${COMMAND}`), system.log);
      assert.equal(outputOf(told, COMMAND), 'to stderr\n');
    },
  );

  for (const shell of SHELLS)
    for (const downloader of DOWNLOADERS)
      test(`runs all lists in ${shell} with ${downloader}`, async (t) => {
        const system = await GuestSystem.create(guest.namespace, { shell, downloader });
        t.after(() => system[Symbol.asyncDispose]());
        // One combination is enough: it takes the seconds between TERM and KILL.
        const isStubborn = shell === 'dash' && downloader === 'curl';
        const since = await lastSequence();
        const lifecycle = lifecycleOf({ lists });
        await serve(lifecycle);
        const { body } = await lab.control(
          'GET',
          `/v1/instances/${base.uuid}/tree/ganeti/latest/guest/enable`,
        );
        await system.write('enable', body.toString());
        await system.boot('sh /var/lib/enable');

        const booted = await wordsUntil(since, 'operational');
        assert.deepEqual(wordsOf(booted), [
          'booting',
          ...['started boot/01-inputs', 'finished boot/01-inputs 0'],
          ...['started boot/02-long', 'finished boot/02-long 0'],
          ...['started boot/03-forks', 'finished boot/03-forks 0'],
          'operational',
        ], system.log); // prettier-ignore
        assert.equal(
          outputOf(booted, 'boot/01-inputs'),
          'hello, <redacted>\n/var/lib/rightlink/attachments: attached\nhttp://169.254.169.254/ganeti/latest\n',
        );
        assertLong(outputOf(booted, 'boot/02-long'), `/var/lib/rightlink/cwd\n${LINES}`);
        assert.equal(outputOf(booted, 'boot/03-forks'), `only: none, it's "$(x)"\n\n`);

        const run = (entry: string, script: string): ViewLifecycle =>
          lifecycleOf({ lists, state: 'operational', next: { do: 'run', entry, script } });
        await serve(run(COMMAND, '01-fail'));
        const failed = await wordsUntil(since, `finished ${COMMAND} 7`);
        assert.equal(outputOf(failed, COMMAND), 'to stderr\n');
        await serve(run(CANCELLED, isStubborn ? '03-stubborn' : '02-endless'));
        await eventsUntil(lab, since, (events) => outputOf(events, CANCELLED) !== '');
        await serve(run(AFTER, '01-fail'));
        await wordsUntil(since, `finished ${CANCELLED} ${isStubborn ? 137 : 143}`);
        await wordsUntil(since, `finished ${AFTER} 7`);
        if (downloader === 'curl') {
          // As the kernel does without free memory.
          await serve(run(KILLED, '04-kills'));
          await wordsUntil(since, `started ${KILLED}`);
          await serve(lifecycleOf({ lists, state: 'operational' }));
          await wordsUntil(since, `finished ${KILLED} 143`);
        }

        const before = await lastSequence();
        await serve(
          lifecycleOf({ lists, state: 'operational', next: { do: 'terminate', entry: LAST } }),
        );
        const ended = await wordsUntil(before, 'decommissioned');
        assert.deepEqual(wordsOf(ended), [
          'decommissioning terminate',
          ...['started decommission/01-leave', 'finished decommission/01-leave 0'],
          'decommissioned',
        ]);
        assert.equal(outputOf(ended, 'decommission/01-leave'), 'because of terminate\n');
        await system.wentDown();
        assert.equal(await system.read('went-down'), 'poweroff\n', system.log);
      });
});
