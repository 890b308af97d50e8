/**
 * Starts untrusted programs. It is Perl, which every Debian has, for system calls that neither Node
 * nor a shell makes. A shell would also drop environment variables with unusual names. The
 * arguments are Node's name of the processor, and
 *   hold SCRIPT ROOT         a mount namespace, made by a shell script, until stdin ends
 *   jail IMAGE DISK          a namespace for image tools: programs and libraries, read-only, and
 *                            these two; DISK may be empty
 *   attach HOLDER FROM TO    shows the mounts at FROM at TO in HOLDER's namespace
 *   detach HOLDER PATH…      removes these mounts
 *   run HOLDER CGROUP ROOT DEV PROC SYS PROGRAM ARGUMENT…
 *   unpack TOOLS HOLDER CGROUP ROOT DEV PROC SYS PROGRAM ARGUMENT…
 *   nobody HOLDER CGROUP ROOT DEV PROC SYS PROGRAM ARGUMENT…
 * - `run`: HOLDER 0 is this mount namespace. DEV, PROC and SYS are mount points, PROC alone (DEV
 *   and SYS empty) in a world whose mounts later programs see. The first of three processes waits
 *   outside. The second is the first process of a PID namespace, which ends with it. The third
 *   drops privileges and becomes the program.
 * - `unpack` only creates files. It has no network, and cannot mount, change its root, start a
 *   process or reach another. It finds the appliance's programs in the folder TOOLS of ROOT, has
 *   256 MiB of memory, and is killed first when memory runs out.
 * - `nobody` reads users' files. It runs as another user without any capability, network, socket or
 *   environment, and is killed first when memory runs out.
 * - One program does all of this, since starting another costs more than its work.
 */
export const CONFINE_PROGRAM = String.raw`
# What "use strict" sets, which loads a file for it: in an emulated machine that is a sixth of a start.
BEGIN { $^H |= 0x602 }
my %numbers = (
  x64 => { unshare => 272, setns => 308, mount => 165, umount2 => 166, prctl => 157, setsid => 112,
    mknodat => 259, setgroups => 116, setresgid => 119, setresuid => 117, capset => 126, prlimit64 => 302 },
  arm64 => { unshare => 97, setns => 268, mount => 40, umount2 => 39, prctl => 167, setsid => 157,
    mknodat => 33, setgroups => 159, setresgid => 149, setresuid => 147, capset => 91, prlimit64 => 261 },
);
my $machine = shift @ARGV;
my $number = $numbers{$machine} or die "confine: no system calls for $machine\n";
my ($OPEN_TREE, $MOVE_MOUNT, $AT_FDCWD) = (428, 429, -100);
my ($NEWNS, $NEWCGROUP, $NEWIPC, $NEWPID, $NEWNET) = (0x20000, 0x2000000, 0x8000000, 0x20000000, 0x40000000);
my ($BIND, $REC, $PRIVATE, $SHARED) = (0x1000, 0x4000, 0x40000, 0x100000);
my ($READ_ONLY, $NOSUID, $REMOUNT) = (1, 2, 0x20);
my ($NOBODY, $EINVAL) = (65534, 22);

# Capabilities that scripts keep, by number: files, owners, modes, nodes, mounts, chroot, priorities. Left out: anything
# that reaches the kernel, other processes, the network's set-up, the clock.
my @kept = (0 .. 10, 14, 15, 18, 21, 23, 24, 27, 28, 29, 31);
# What unpacking takes: files, owners, modes, nodes, and attributes of the names trusted and security.
my @kept_to_unpack = (0 .. 4, 21, 27, 31);
# System calls that reach other processes or the kernel past all of that: bpf, perf_event_open, swapon, swapoff, kexec_load,
# kexec_file_load, init_module, finit_module, delete_module, iopl, ioperm; for each ABI that the machine runs.
my @refused = $machine eq 'x64'
  ? ([0xc000003e, 321, 298, 167, 168, 246, 320, 175, 313, 176, 172, 173],
     [0x40000003, 357, 336, 87, 115, 283, 128, 350, 129, 110, 101])
  : ([0xc00000b7, 280, 241, 224, 225, 104, 294, 105, 273, 106],
     [0x40000028, 386, 364, 87, 115, 347, 401, 128, 379, 129]);

# Refused to who unpacks and who reads images, besides: ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_open,
# pidfd_getfd, socket, socketpair, mount, umount2, pivot_root, chroot, unshare, setns, open_by_handle_at, open_tree,
# move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr, add_key, request_key, keyctl, userfaultfd, io_uring_setup,
# io_uring_enter, io_uring_register; and each ABI but the machine's own. A network namespace keeps nobody from sockets of vsock.
my @refused_to_read = $machine eq 'x64'
  ? (101, 310, 311, 312, 434, 438, 41, 53, 165, 166, 155, 161, 272, 308, 304, 428 .. 433, 442, 248, 249, 250, 323, 425 .. 427)
  : (117, 270, 271, 272, 434, 438, 198, 199, 40, 39, 41, 51, 97, 268, 265, 428 .. 433, 442, 217, 218, 219, 282, 425 .. 427);
# And to who unpacks, who needs no second process and no thread: clone, clone3, fork, vfork.
my @refused_to_unpack = (@refused_to_read, $machine eq 'x64' ? (56, 435, 57, 58) : (220, 435));
my ($has_network, $is_nobody, $tools) = (1, 0, '');
my ($ADDRESS_SPACE, $UNPACK_BYTES) = (9, 1 << 28);

sub call {
  my ($name, @args) = @_;
  my $result = syscall($number->{$name} // $name, @args);
  die "confine: $name: $!\n" if $result == -1;
  return $result;
}
sub mount { my ($from, $to, $type, $flags, $data) = @_; call('mount', $from, $to, $type, $flags, $data // 0) }
sub enter {
  my ($holder) = @_;
  return if $holder == 0;
  open(my $namespace, '<', "/proc/$holder/ns/mnt") or die "confine: $!\n";
  open(my $root, '<', "/proc/$holder/root") or die "confine: $!\n";
  call('setns', fileno($namespace), $NEWNS);
  chdir($root) && chroot('.') or die "confine: $!\n";
}
# Programs and libraries, read-only.
sub lay_programs {
  my ($to) = @_;
  mount('/usr', $to, 0, $BIND);
  mount('none', $to, 0, $REMOUNT | $BIND | $READ_ONLY | $NOSUID);
}
# What a user brought can make it want all memory: then it goes, and neither the agent nor a tool of its own.
sub go_first {
  open(my $order, '>', '/proc/self/oom_score_adj') or die "confine: oom_score_adj: $!\n";
  syswrite($order, '1000') or die "confine: oom_score_adj: $!\n";
}
sub keep {
  my ($root, $make) = @_;
  call('unshare', $NEWNS);
  mount('none', '/', 0, $REC | $PRIVATE);
  $make->();
  chdir($root) && chroot('.') or die "confine: $!\n";
  mount('none', '/', 0, $REC | $SHARED);
  # What is mounted on it in one program's namespace must not be seen in another's. Where nothing is, nothing will be.
  eval { mount('none', '/proc', 0, $PRIVATE) };
  syswrite(STDOUT, "ready\n");
  1 while sysread(STDIN, my $byte, 1);
}
sub hold {
  my ($script, $root) = @_;
  keep($root, sub { system('/bin/sh', '-euc', $script) == 0 or die "confine: the world could not be made\n" });
}
# A block device gets a node of its own, a file (in tests) is mounted.
sub give {
  my ($from, $to, $mode) = @_;
  if (-b $from) {
    call('mknodat', $AT_FDCWD, $to, 0060000, (stat _)[6]);
    chown($NOBODY, $NOBODY, $to) && chmod($mode, $to) or die "confine: $to: $!\n";
    return;
  }
  open(my $name, '>', $to) or die "confine: $to: $!\n";
  mount($from, $to, 0, $BIND);
}
sub jail {
  my ($image, $disk) = @_;
  keep('/mnt', sub {
    umask(0);
    mount('jail', '/mnt', 'tmpfs', $NOSUID, 'mode=755,size=256k');
    for (['usr', 0755], ['dev', 0755], ['tmp', 01777]) {
      mkdir("/mnt/$_->[0]", $_->[1]) or die "confine: $_->[0]: $!\n";
    }
    call('mknodat', $AT_FDCWD, '/mnt/dev/null', 0020666, 0x103);
    lay_programs('/mnt/usr');
    symlink("usr/$_", "/mnt/$_") or die "confine: $_: $!\n" for qw(bin sbin lib lib64);
    give($image, '/mnt/image', 0400);
    give($disk, '/mnt/disk', 0600) if $disk ne '';
  });
}
sub attach {
  my ($holder, $from, $to) = @_;
  my $tree = call($OPEN_TREE, $AT_FDCWD, $from, 0x8000 | 0x80000 | 1);
  enter($holder);
  system('/bin/mkdir', '-p', $to) == 0 or die "confine: no $to\n";
  call($MOVE_MOUNT, $tree, '', $AT_FDCWD, $to, 4);
}
sub detach {
  my ($holder, @paths) = @_;
  enter($holder);
  # What cannot be taken off is found by who asked: it is still there.
  for my $path (@paths) { eval { call('umount2', $path, 2) } }
}
sub refuse_calls {
  my @code = ([0x20, 0, 0, 4]);
  for my $abi (@refused) {
    my ($arch, @calls) = @$abi;
    # Numbers of the x32 ABI begin here; it is of no use to a script.
    my $others = $arch == 0xc000003e ? 1 : 0;
    push @code, [0x15, 0, @calls + 3 + $others, $arch], [0x20, 0, 0, 0];
    push @code, [0x35, @calls + 1, 0, 0x40000000] if $others;
    push @code, map { [0x15, @calls - $_, 0, $calls[$_]] } 0 .. $#calls;
    push @code, [0x06, 0, 0, 0x7fff0000];
    push @code, [0x06, 0, 0, 0x00050001];
  }
  push @code, [0x06, 0, 0, 0x00050001];
  my $filter = join '', map { pack('SCCL', @$_) } @code;
  call('prctl', 22, 2, pack('Sx![P]P', scalar @code, $filter), 0, 0);
}
sub become_nobody {
  call('setgroups', 0, 0);
  call($_, $NOBODY, $NOBODY, $NOBODY) for qw(setresgid setresuid);
  call('capset', pack('LL', 0x20080522, 0), pack('L6', (0) x 6));
  call('prctl', 38, 1, 0, 0, 0);
  %ENV = (PATH => '/usr/bin', LC_ALL => 'C');
}
sub become {
  my ($root, @program) = @_;
  call('setsid');
  chroot($root) && chdir('/') or die "confine: $root: $!\n";
  my %keep = map { $_ => 1 } @kept;
  for my $capability (0 .. 63) {
    next if $keep{$capability};
    next if syscall($number->{prctl}, 24, $capability, 0, 0, 0) != -1;
    # The kernel has no more of them; whatever else it says, the program would keep this one.
    last if $! == $EINVAL;
    die "confine: capability $capability: $!\n";
  }
  become_nobody() if $is_nobody;
  call('prlimit64', 0, $ADDRESS_SPACE, pack('QQ', $UNPACK_BYTES, $UNPACK_BYTES), 0) if $tools ne '';
  refuse_calls();
  exec { $program[0] } @program or print STDERR "$program[0]: $!\n";
  exit 127;
}
sub run {
  my ($holder, $cgroup, $root, $dev, $proc, $sys, @program) = @_;
  if ($cgroup ne '') {
    open(my $procs, '>', "$cgroup/cgroup.procs") or die "confine: $cgroup: $!\n";
    syswrite($procs, $$) or die "confine: $cgroup: $!\n";
  }
  enter($holder);
  call('unshare', $NEWNS | $NEWPID | $NEWIPC | ($cgroup ne '' ? $NEWCGROUP : 0) | ($has_network ? 0 : $NEWNET));
  mount('none', '/', 0, $REC | $PRIVATE) if $dev ne '' || $holder == 0;
  lay_programs("$root/$tools") if $tools ne '';
  pipe(my $status, my $told) or die "confine: $!\n";
  my $first = fork() // die "confine: $!\n";
  if ($first == 0) {
    call('prctl', 1, 9, 0, 0, 0);
    mount('/dev', $dev, 0, $BIND | $REC) if $dev ne '';
    mount('/sys', $sys, 0, $BIND | $REC) if $sys ne '';
    mount('proc', $proc, 'proc', 0) if $proc ne '';
    my $script = fork() // die "confine: $!\n";
    become($root, @program) if $script == 0;
    while ((my $ended = wait()) != -1) {
      next if $ended != $script;
      syswrite($told, "$?");
      exit 0;
    }
    exit 1;
  }
  close($told);
  waitpid($first, 0);
  my $end = $?;
  sysread($status, my $text, 16);
  $end = $text if $text ne '';
  if (my $signal = $end & 127) {
    kill $signal, $$;
    sleep 1;
  }
  exit($end >> 8);
}
sub unpack_files {
  $tools = shift;
  $has_network = 0;
  go_first();
  @kept = @kept_to_unpack;
  @refused = ([@{$refused[0]}, @refused_to_unpack]);
  run(@_);
}
sub run_as_nobody {
  go_first();
  ($has_network, $is_nobody, @kept) = (0, 1);
  @refused = ([@{$refused[0]}, @refused_to_read]);
  run(@_);
}
my ($mode, @args) = @ARGV;
my %modes = (hold => \&hold, jail => \&jail, attach => \&attach, detach => \&detach);
%modes = (%modes, run => \&run, unpack => \&unpack_files, nobody => \&run_as_nobody);
$modes{$mode}->(@args);
`;
