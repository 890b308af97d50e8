import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { ProgramEnd } from '#shared/process/run-in-group.ts';
import { type ScriptMounts, unmountLeft } from '../../../../appliance/agent/disks/unmount.ts';
import {
  type Confinement,
  NO_WORLD,
  runConfined,
} from '../../../../appliance/agent/scripts/confine.ts';
import { type OpenWorld, ScriptWorld } from '../../../../appliance/agent/scripts/script-world.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-confine-'));
after(() => rmSync(directory, { recursive: true }));

const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

async function run(
  script: string,
  confinement: Confinement = NO_WORLD,
): Promise<ProgramEnd & { readonly lines: readonly string[] }> {
  const lines: string[] = [];
  const end = await runConfined(
    confinement,
    { path: '/', proc: '/proc' },
    ['/bin/sh', '-c', script],
    environment,
    (line) => lines.push(line),
  );
  return { ...end, lines };
}

/** Opens a world of this machine's system in its own mount namespace. */
async function openHere(script = 'true'): Promise<OpenWorld> {
  const world = new ScriptWorld({
    description: { script, root: '/' },
    prepare: async () => undefined,
    limit: async () => null,
  });
  return await world.open();
}

test('a detached process ends with the script', async () => {
  const fifo = join(directory, 'held');
  execFileSync('mkfifo', [fifo]);
  const fd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const end = await run(
      `exec 9>${fifo}; setsid sh -c 'setsid sleep 1000 & wait' >/dev/null 2>&1 & echo x >&9`,
    );
    assert.ok(end.isSuccess, end.how);
    const bytes = Buffer.alloc(8);
    assert.equal(readSync(fd, bytes), 2);
    // End of file: no process holds the other end.
    assert.equal(readSync(fd, bytes), 0);
  } finally {
    closeSync(fd);
  }
});

test('its result has the exit status, the signal, or 127 for a missing program', async () => {
  assert.equal((await run('exit 7')).how, 'exited with status 7');
  assert.equal((await run('kill -9 $$')).how, 'was killed by SIGKILL');
  const none = await runConfined(NO_WORLD, { path: '/' }, ['/nowhere'], {}, () => undefined);
  assert.equal(none.status, 127);
  assert.deepEqual(none.lastLines, ['/nowhere: No such file or directory']);
});

test('it gets exactly its environment, also with unusual names', async () => {
  const lines: string[] = [];
  const given = { 'OSP_A.B': 'odd name', OSP_LINES: 'one', PATH: '/usr/bin' };
  await runConfined(NO_WORLD, { path: '/' }, ['/usr/bin/env'], given, (line) => lines.push(line));
  assert.deepEqual(
    lines.sort(),
    Object.entries(given)
      .map((each) => each.join('='))
      .sort(),
  );
});

test('it sees only its own processes, and cannot access the agent through another procfs or its pid', async () => {
  const world = await openHere();
  try {
    const own = await run('ls /proc | grep -c "^[0-9]"; kill -0 $$ && echo itself', world);
    assert.ok(Number(own.lines[0]) <= 5, own.lines.join());
    // A second procfs may be below the new one. It names the agent, without access to its memory.
    const agent = `/proc/${process.pid}`;
    const { lines } = await run(
      `umount /proc && test -d ${agent} && echo found
      head -c 1 ${agent}/mem >/dev/null 2>&1 && echo opened its memory
      ls ${agent}/root/ ${agent}/cwd/ >/dev/null 2>&1 && echo went into its root
      readlink ${agent}/fd/0 ${agent}/ns/mnt ${agent}/ns/pid
      nsenter --target ${process.pid} --mount true 2>/dev/null && echo entered its namespace
      kill -0 ${process.pid} 2>/dev/null && echo signalled it
      true`,
      world,
    );
    assert.deepEqual(lines, ['found']);
  } finally {
    await world.end();
  }
});

test('root in a confined script lacks the capabilities and system calls that reach the kernel', async () => {
  const { lines } = await run('grep -E "^(CapPrm|CapBnd|Seccomp):" /proc/self/status');
  const status = new Map(lines.map((line) => line.split(/:\s+/) as [string, string]));
  assert.equal(status.get('Seccomp'), '2');
  const kept = BigInt(`0x${status.get('CapBnd')}`);
  assert.equal(status.get('CapPrm'), status.get('CapBnd'));
  const has = (capability: bigint): boolean => ((kept >> capability) & 1n) === 1n;
  // SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_BOOT, NET_ADMIN, NET_RAW, SYSLOG, PERFMON, BPF
  for (const capability of [16n, 17n, 19n, 22n, 12n, 13n, 34n, 38n, 39n])
    assert.ok(!has(capability), `capability ${capability}`);
  // CHOWN, SYS_CHROOT, SYS_ADMIN, MKNOD
  for (const capability of [0n, 18n, 21n, 27n]) assert.ok(has(capability), `${capability}`);
  const calls = {
    bpf: 321,
    perf_event_open: 298,
    swapon: 167,
    finit_module: 313,
    x32_getpid: 0x40000027,
  };
  const perl = Object.values(calls)
    .map((number) => `print syscall(${number}, 0, 0, 0, 0, 0) == -1 ? "$!\\n" : "done\\n";`)
    .join(' ');
  const refused = await run(`perl -e '${perl}'`);
  if (process.arch === 'x64')
    assert.deepEqual(
      refused.lines,
      Object.keys(calls).map(() => 'Operation not permitted'),
    );
});

test('a mount of one program is visible to the next program and not to the agent', async () => {
  const place = join(directory, 'place');
  mkdirSync(place);
  const world = await openHere();
  try {
    const made = await run(`mount -t tmpfs none ${place} && echo kept >${place}/file`, world);
    assert.ok(made.isSuccess, made.lines.join());
    assert.deepEqual((await run(`cat ${place}/file`, world)).lines, ['kept']);
    assert.deepEqual(readdirSync(place), []);
    assert.equal(readFileSync(join(world.rootPath, place, 'file'), 'utf8'), 'kept\n');
    await world.hide([place]);
    assert.deepEqual((await run(`ls ${place}`, world)).lines, []);
  } finally {
    await world.end();
  }
  assert.ok(!existsSync(world.rootPath));
});

test('it sees a directory that the agent shows, until the agent hides it', async () => {
  const shown = join(directory, 'shown');
  mkdirSync(shown);
  // The agent's own mount, which is hidden unless it is shown.
  const world = await openHere(`mount -t tmpfs none ${directory}`);
  try {
    writeFileSync(join(shown, 'file'), 'of the agent\n');
    assert.equal((await run(`ls ${shown}`, world)).isSuccess, false);
    await world.show(shown);
    const seen = await run(`cat ${shown}/file && ls ${directory}`, world);
    assert.deepEqual(seen.lines, ['of the agent', 'shown']);
    await world.hide([shown]);
    assert.deepEqual((await run(`ls ${shown}`, world)).lines, []);
  } finally {
    await world.end();
  }
});

test('300 mounts that scripts left are unmounted and logged, and a mount that stays is named', async () => {
  const top = join(directory, 'left');
  mkdirSync(top);
  const count = 300;
  const world = await openHere(`mount -t tmpfs none ${top}`);
  // A mount named like a block device's. This machine's own mounts stay.
  const left: ScriptMounts = {
    listMounts: () => world.listMounts().filter(({ device }) => device === '/dev/left'),
    hide: (paths) => world.hide(paths),
  };
  const lines: string[] = [];
  const reporter = { log: (line: string) => void lines.push(line) };
  try {
    const each = `mkdir ${top}/$i && mount -t tmpfs /dev/left ${top}/$i`;
    await run(`for i in $(seq ${count}); do ${each}; done`, world);
    await unmountLeft(left, reporter);
    assert.equal(lines.length, count);
    assert.equal(lines.at(-1), `/dev/left was still mounted on ${top}/1: unmounted`);
    assert.deepEqual(left.listMounts(), []);
    await run(`mount -t tmpfs /dev/left ${top}/1 && mount -t tmpfs cover ${top}`, world);
    await assert.rejects(unmountLeft(left, reporter), {
      code: 'COMMAND_FAILED',
      message: `cannot unmount the instance: still mounted: /dev/left on ${top}/1`,
    });
  } finally {
    await world.end();
  }
});
