import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTar } from '../../../../appliance/agent/overlay/run-tar.ts';
import { tryCommand } from '../../../../appliance/agent/process/command.ts';
import { PERL, planConfineCommand } from '../../../../appliance/agent/process/held-namespace.ts';
import { readProcFile } from '../../../../noded/host/process-facts.ts';

/** Calls by name, with arguments that succeed for root. */
const refused: Readonly<Record<string, string>> = {
  fork: 'fork',
  socket: 'syscall(41, 1, 1, 0) != -1',
  'process_vm_readv of its parent': 'syscall(310, getppid(), 0, 0, 0, 0, 0) != -1',
  ptrace: 'syscall(101, 0, 0, 0, 0) != -1',
  chroot: 'chroot("/")',
  unshare: 'syscall(272, 0x10000000) != -1',
  mount: 'syscall(165, my $n = "none", my $to = "/", 0, 0x40000, 0) != -1',
  open_by_handle_at: '!(syscall(304, -100, my $handle = "\\0" x 16, 0) == -1 && $!{EPERM})',
};
const allowed: Readonly<Record<string, string>> = {
  'an owner': 'chown(12, 34, $file)',
  'a mode': 'chmod(04755, $file)',
  'a node': 'syscall(133, my $node = "$folder/node", 0020600, 259) != -1',
  'an attribute': 'syscall(188, $file, my $name = "trusted.x", my $value = "1", 1, 0) != -1',
};

test('a confined unpacking program may create files of any kind, and has no other access', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnt-unpack-'));
  try {
    const tried = Object.entries({ ...refused, ...allowed }).map(
      ([what, code]) => `print "${what}\\n" if eval { ${code} };`,
    );
    const program = `use Errno; my $folder = shift; my $file = "$folder/file"; open(my $f, '>', $file); $| = 1; ${tried.join('\n')}`;
    const tools = join(folder, 'tools');
    mkdirSync(tools);
    const confined = planConfineCommand('unpack', tools.slice(1), '0', '', '/', '', '', '');
    const result = await tryCommand(PERL, [...confined, PERL, '-e', program, folder]);
    assert.deepEqual(result.stdout.trim().split('\n'), Object.keys(allowed), result.stderr);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('tar has no network, few capabilities, a filter of system calls and a limit of memory', async () => {
  const root = mkdtempSync(join(tmpdir(), 'gnt-unpack-'));
  const tar = startTar(root);
  try {
    const pid = await waitForTar();
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    assert.match(status, /^Seccomp:\t2$/m);
    // chown, dac_override, dac_read_search, fowner, fsetid, sys_admin, mknod, setfcap.
    assert.match(status, /^CapEff:\t000000008820001f$/m);
    assert.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max address space +268435456 /m);
    assert.equal(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'), '1000\n');
    assert.notEqual(readlinkSync(`/proc/${pid}/ns/net`), readlinkSync('/proc/self/ns/net'));
  } finally {
    tar.kill();
    await tar.ended;
    rmSync(root, { recursive: true });
  }
});

/** Returns the last process of the chain, once it is the unpacking program. */
test('a killed tar is an error of the package, and a tar that cannot start is not', async () => {
  const root = mkdtempSync(join(tmpdir(), 'gnt-unpack-'));
  const tar = startTar(root);
  try {
    process.kill(await waitForTar(), 'SIGKILL');
    const ended = { code: 'PACKAGE_INVALID', message: /killed by SIGKILL: it needed more memory/ };
    await assert.rejects(tar.ended, ended);
    const module = join(import.meta.dirname, '../../../../appliance/agent/overlay/run-tar.ts');
    const program = `const { startTar } = await import(${JSON.stringify(module)});
      await startTar(${JSON.stringify(root)}).ended.catch((error) => console.log(error.code, error.message))`;
    const without = ['--bounding-set', '-sys_admin', '--inh-caps', '-sys_admin'];
    const node = [process.execPath, '--input-type=module', '-e', program];
    const { stdout } = await tryCommand('setpriv', [...without, ...node]);
    assert.match(stdout, /^COMMAND_FAILED the appliance cannot start tar: confine: unshare: /);
  } finally {
    tar.kill();
    rmSync(root, { recursive: true });
  }
});

async function waitForTar(): Promise<number> {
  for (;;) {
    const found = descendantsOf(process.pid).find((pid) => {
      const [program = ''] = (readProcFile(pid, 'cmdline') ?? '').split('\0');
      return program === 'tar' || program.includes('/ld-linux-');
    });
    if (found !== undefined) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Children of a thread of this process; the main thread starts all of them. */
function descendantsOf(pid: number): number[] {
  return (readProcFile(pid, `task/${pid}/children`) ?? '')
    .split(' ')
    .filter((child) => child !== '')
    .flatMap((child) => [Number(child), ...descendantsOf(Number(child))]);
}
