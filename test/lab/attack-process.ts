import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

/**
 * Written in perl, which Debian always has, because the user cannot read this project. 434, 438 and
 * 101 are pidfd_open, pidfd_getfd (of descriptor 3) and ptrace (16: attach, 17: detach).
 */
const ATTACK = `
use Errno; my ($pid, $fd) = @ARGV; my %done;
sub note { my ($name, $ok) = @_; my ($e) = grep { $!{$_} } qw(EACCES EPERM ESRCH EIO);
  print "$name ", ($ok ? 'done' : $e // "$!"), "\\n" }
note('maps', open(my $maps, '<', "/proc/$pid/maps"));
note('memory', open(my $memory, '+<', "/proc/$pid/mem"));
note('descriptors', opendir(my $dir, "/proc/$pid/fd"));
my $pidfd = syscall(434, $pid + 0, 0);
note('descriptor', syscall(438, $pidfd, 3, 0) >= 0);
note('trace', syscall(101, 16, $pid + 0, 0, 0) >= 0);
syscall(101, 17, $pid + 0, 0, 0);
note('signal', kill(0, $pid));
`;

/** Returns the results of attacks by user `uid` on the process `pid`: `done`, or the error. */
export function attack(pid: number, uid: number): Readonly<Record<string, string>> {
  const user = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--bounding-set=-all'];
  const words = [...user, 'perl', '-e', ATTACK, String(pid)];
  const { stdout, stderr } = spawnSync('setpriv', words, { encoding: 'utf8' });
  assert.equal(stderr, '');
  const lines = stdout.trim().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(' ') as [string, string]));
}
