/**
 * Runs as the parent of a QEMU process with shared disks. It reads the end of the lease by the
 * clock that counts while the host is suspended. It pauses QEMU when the lease ended, continues it
 * after a renewal, and kills it when the lease ended long ago. It needs no daemon, and QEMU does
 * not outlive it (`setpriv --pdeathsig`).
 */
const SCRIPT = `
lease=$1 boot=$2; shift 2
known=
is_number() { case "$1" in '' | *[!0-9]* | ?????????????*) return 1 ;; esac; }
# Reads the file if it is a lease of this boot.
read_lease() {
  read -r of pause end <"$lease" && is_number "$pause" && is_number "$end" && [ "$of" = "$boot" ]
}
# 0: the node may write; 1: it may not, or the file is no lease; 2: QEMU must end, because the node
# could not write for long. Without a lease the end of the last one counts.
look() {
  read -r now rest </proc/uptime && now=\${now%.*} && is_number "$now" || return 1
  if read_lease; then
    known=$end
    [ "$now" -lt "$pause" ] && return 0
  fi
  [ -n "$known" ] && [ "$now" -ge "$known" ] && return 2
  return 1
}
if ! look 2>/dev/null; then
  echo 'this node may not write shared disks: its lease has run out' >&2
  exit 1
fi
read -r score </proc/self/oom_score_adj
echo -1000 >/proc/self/oom_score_adj
(echo "$score" >/proc/self/oom_score_adj; export GNT_PARENT=$$; exec "$@") &
child=$!
exec 2>/dev/null
trap : CHLD HUP INT TERM
paused=
while kill -0 "$child"; do
  sleep 1 &
  tick=$!
  # After wait the pid is free, and another process may have it.
  wait "$tick" || kill "$tick"
  kill -0 "$child" || break
  look
  case $? in
    0) [ -z "$paused" ] || { kill -CONT "$child"; paused=; } ;;
    1) kill -STOP "$child"; paused=1 ;;
    *) kill -KILL "$child" ;;
  esac
done
wait "$child"
status=$?
# Each child had QEMU's descriptors. The disks are free when all have ended.
wait
exit "$status"
`;

/** @param command becomes QEMU, and dies with its parent */
export function planFenced(
  leaseFile: string,
  bootId: string,
  command: readonly string[],
): readonly string[] {
  return ['/bin/sh', '-c', SCRIPT, 'gnt-fence', leaseFile, bootId, ...command];
}
