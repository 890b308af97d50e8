#!/bin/sh
# The guest's side of run lists: runs the boot list in each boot, scripts that the host asks for, and the decommission list before the
# system goes down, and tells the host of each. The words are RightLink 10's. Needs a POSIX shell, and curl or a wget.
# `agent run` is what the unit runs, `agent decommission` what it runs to stop, `agent work` is what `run` starts beside itself. Where
# systemd does not supervise the agent, an init script runs `agent start` and `agent stop`.
set -u
umask 077
service=http://169.254.169.254 token=''
base=$service/ganeti/latest
home=/var/lib/rightlink dir=/run/rightlink late=/run/rightlink/late system=/run/systemd/system
self=$home/agent tmp=$dir/$$
refused='' worker='' patience=1000000 long=30 # attempts at telling the host something, and seconds for each: few when the system goes down
# Bytes of one script's output that the host keeps, and of one piece of it.
max_output=4194304 max_piece=65536
tool='' limited=$(command -v timeout || :) own_session=$(command -v setsid || :)

log() { echo "rightlink: $*" >&2; }
# Sets `tool`. Fails in a guest that has no program for HTTP.
find_tool() {
  help=$(wget --help 2>&1)
  if command -v wget >/dev/null; then case $help in *--no-config*) tool=wget ;; *) tool=busybox ;; esac; fi
  # Wget 1 begins sooner than curl, and holds a third of the memory while it waits.
  if command -v curl >/dev/null; then case $help in *'GNU Wget 1'*) ;; *) tool=curl ;; esac; fi
  [ -n "$tool" ]
}
await_tool() {
  find_tool && return
  log 'curl and wget are missing: run lists start when one of them is installed'
  until find_tool; do sleep 5; done
}
# request SECONDS PATH [FILE]: gets a path, or posts a file to it. Sets `status`, 000 without an answer that is whole, and `etag`; the
# body is in $tmp.body. Each program is told to leave configuration and proxies alone. What is posted to busybox' wget ends at a NUL.
request() {
  header="X-aws-ec2-metadata-token: $token" && : >"$tmp.head" >"$tmp.body"
  case $tool in
  curl) curl -q -sS --noproxy '*' -m "$1" -H Expect: ${token:+-H "$header"} -D "$tmp.head" -o "$tmp.body" ${3:+--data-binary "@$3"} "$base/$2" ;;
  wget) wget --no-config -q -S --no-proxy -t 1 -T "$1" ${token:+--header "$header"} -O "$tmp.body" ${3:+--post-file "$3"} "$base/$2" 2>"$tmp.head" ;;
  busybox)
    [ -z "${3-}" ] || tr '\000' '?' <"$3" >"$tmp.sent"
    ${limited:+"$limited" "$1"} wget -q -S -Y off ${token:+--header "$header"} -O "$tmp.body" ${3:+--post-file "$tmp.sent"} "$base/$2" 2>"$tmp.head" ;;
  esac >/dev/null 2>&1
  client=$? status=000 etag=0
  while read -r first second _; do
    case $first in HTTP/*) status=$second etag=0 ;; [Ee][Tt]ag:) etag=${second#\"} etag=${etag%%\"*} ;; esac
  done <"$tmp.head"
  [ "$client" -eq 0 ] || [ -n "${3-}" ] || case $status in 2??) status=000 ;; esac
}
# The same, with a session token where they are required.
ask() {
  request "$@"
  [ "$status" = 401 ] || return 0
  ttl='X-aws-ec2-metadata-token-ttl-seconds: 21600'
  case $tool in
  curl) token=$(curl -q -sS --noproxy '*' -m 10 -X PUT -H "$ttl" "$service/latest/api/token" 2>/dev/null) ;;
  wget) token=$(wget --no-config -q --no-proxy -t 1 -T 10 --method=PUT --header "$ttl" -O - "$service/latest/api/token" 2>/dev/null) ;;
  busybox) log 'session tokens are required: this needs curl or GNU wget' ;;
  esac
  [ -z "$token" ] || request "$@"
}
# Asks until there is an answer that another attempt would not change.
insist() {
  tries=0
  while ask "$@"; do
    case $status in 2?? | 304 | 400 | 404 | 409 | 410 | 413) return 0 ;; esac
    [ "$((tries += 1))" -lt "$patience" ] || return 1
    sleep "$((tries < 10 ? 1 : 5))"
  done
}

# The absence of the state is a fresh boot. The kernel's word for the boot is in it, for systems that keep /run.
load() {
  state='' run='' boot='' number=0 entry='' last=''
  [ ! -e "$dir/state" ] || . "$dir/state"
  read -r now </proc/sys/kernel/random/boot_id && [ "$boot" = "$now" ] || state=''
}
save() {
  printf "state='%s'\nrun='%s'\nboot='%s'\nnumber='%s'\nentry='%s'\nlast='%s'\n" "$state" "$run" "$boot" "$number" "$entry" "$last" >"$tmp.state"
  mv "$tmp.state" "$dir/state"
}

# note TYPE [MEMBERS]: an event, for the next `tell`. They are numbered, so that one that is posted twice counts once.
note() {
  number=$((number + 1))
  printf '{"type":"%s","run":"%s","boot":"%s","number":%s%s}\n' "$1" "$run" "$boot" "$number" "${2-}" >>"$dir/events"
}
say() { note "$@" && save; }
note_finished() { last=$entry entry='' && note finished ",\"entry\":\"$last\",\"status\":$1"; }
say_finished() { note_finished "$1" && save; }
# tell HOW: posts what was said, by `ask` or `insist`. What is refused once is refused again.
tell() {
  [ -s "$dir/events" ] || return 0
  { comma='[' && while IFS= read -r line; do echo "$comma$line" && comma=,; done <"$dir/events" && echo ']'; } >"$tmp.post"
  "$1" "$long" lifecycle/events "$tmp.post"
  case $status in 2??) ;; 400 | 409 | 413) refused=1 && log "the host refuses: $(cat "$tmp.body" "$dir/events")" ;; *) return 1 ;; esac
  : >"$dir/events"
}
# What the host wants, if all of it came. JSON with one member a line: those of the status are two blanks deep, those of `next` four.
read_status() {
  at_host='' host_run='' limit=180 wanted='' wanted_kind='' wanted_entry='' wanted_script='' end=''
  while IFS= read -r line; do
    value=${line#*: } value=${value%,} value=${value#\"} value=${value%\"}
    case $line in
    '  "state":'*) at_host=$value ;;
    '  "run":'*) host_run=$value ;;
    '  "decommissionTimeoutS":'*) limit=$value ;;
    '    "do":'*) wanted=$value ;; '    "kind":'*) wanted_kind=$value ;;
    '    "entry":'*) wanted_entry=$value ;; '    "script":'*) wanted_script=$value ;; '}') end=1 ;;
    esac
  done <"$tmp.body"
  [ -n "$host_run" ] && [ -n "$end" ]
}
fetch() { insist 300 "$1" && [ "$status" = 200 ] && mv "$tmp.body" "$2"; } # PATH FILE
# fetch_all PATH FOLDER: gets files that come as one document, behind a line for each with its first byte, its length and its name. What
# came in part is asked for again. Where there is no such document, they are asked for one by one: the service may be an older one.
fetch_all() {
  parts=0
  until { insist 300 "$1.bundle" && rm -rf "$2" && mkdir -p "$2"; } || return 1; [ "$status" != 200 ] || unpack "$2"; do
    { [ "$((parts += 1))" -lt "$patience" ] && sleep 1; } || return 1
  done
  case $status in 200) ;; 404) fetch_each "$@" ;; *) return 1 ;; esac && chmod -R 700 "$2"
}
unpack() { # FOLDER: the numbers have eight places each; a name may end in a blank
  next=0
  while IFS= read -r line && name=${line#??????????????????} && [ -n "$name" ] && [ "$name" != "$line" ]; do
    set -- "$1" ${line%"$name"} && tail -c "+$2" "$tmp.body" | head -c "$3" >"$1/$name" && next=$(($2 + $3))
  done <"$tmp.body"
  [ "$(wc -c <"$tmp.body")" -eq "$((next - 1))" ]
}
fetch_each() { # PATH FOLDER: a folder that the service does not have is empty
  insist 30 "$1/" && case $status in 200) mv "$tmp.body" "$tmp.names" ;; 404) return 0 ;; *) return 1 ;; esac || return 1
  while IFS= read -r name; do fetch "$(echo "$1/$name" | sed 's/ /%20/g')" "$2/$name" || return 1; done <"$tmp.names"
}
# The files of a list's scripts, and their variables, or why there are none; in a file of this process, as one that ends removes its own.
fetch_inputs() { # LIST
  rm -f "$dir/lost" "$dir"/*.env
  fetch_all attachments "$home/attachments" && insist 30 "run-lists/$1.env" || return 1
  case $status in
  200) mv "$tmp.body" "$tmp.env" ;; 404) : >"$tmp.env" ;;
  *) { cat "$tmp.body" && echo "run-lists/$1.env: $status"; } >"$dir/lost" ;;
  esac
}
# Posts what was printed since the last time; the host drops what it has already.
send_output() { # HOW
  [ -s "$work/out" ] && size=$(wc -c <"$work/out") || return 0
  while [ "$sent" -lt "$size" ]; do
    tail -c "+$((sent + 1))" "$work/out" | head -c "$max_piece" >"$tmp.piece"
    "$1" "$long" "lifecycle/output?entry=$entry&offset=$sent" "$tmp.piece"
    case $status in
    2??) sent=$((sent + $(wc -c <"$tmp.piece"))) ;; 400 | 404 | 409) sent=$size ;; *) return 1 ;;
    esac
    echo "$sent" >"$work/sent"
  done
}

interpreter_of() { # FILE
  { read -r line <"$1" || [ -n "$line" ]; } && set -f && set -- ${line#'#!'} && echo "${1-}"
}
# run_script NAME FILE [REASON]: its status is in `code`. Its output goes through a pipe, so that the host's bound is one for the file,
# too; what the script leaves running keeps the pipe, and is not waited for.
run_script() {
  work=$dir/work sent=0
  { [ ! -e "$work" ] || rm -rf "$work" "$home/cwd"; } && mkdir -p "$work" "$home/cwd" && mkfifo "$work/pipe" && : >"$work/out" && echo 0 >"$work/sent"
  (trap '' XFSZ && ulimit -f "$((max_output / 512))" && { cat >>"$work/out" 2>/dev/null || wc -c >"$work/more"; }) <"$work/pipe" &
  reader=$!
  (
    [ ! -e "$dir/lost" ] || { cat "$dir/lost" && exit 126; }
    interpreter=$(interpreter_of "$2")
    [ -x "$interpreter" ] || { echo "rightlink: the guest has no interpreter '$interpreter' for $1" && exit 127; }
    set -a && HOME=/root USER=root LOGNAME=root SHELL=/bin/sh GNT_SCRIPT=$1 RS_ATTACH_DIR=$home/attachments RS_SELF_HREF=$base
    [ -z "${3-}" ] || DECOM_REASON=$3
    # Nothing of ours is looked up behind the operator's variables.
    set -- "$2" "$home/cwd" ${own_session:+"$own_session"}
    . "$tmp.env"
    cd "$2" && exec ${3:+"$3"} "$1"
  ) </dev/null >"$work/pipe" 2>&1 &
  child=$! && echo "$child" >"$dir/child"
  trap : USR1
  (while sleep 1 && kill -0 "$$" 2>/dev/null; do tmp=$dir/teller && send_output ask; [ ! -e "$work/ended" ] || kill -USR1 "$$"; done) &
  teller=$!
  wait "$child"; code=$?
  : >"$dir/child" >"$work/ended" && wait "$reader"
  kill "$teller" && wait "$teller" 2>/dev/null
  read -r sent <"$work/sent" && send_output insist
  more=0 && [ ! -s "$work/more" ] || read -r more <"$work/more"
  # What was not kept is told by where its last byte is.
  [ "$more" -eq 0 ] || { echo >"$tmp.piece" && insist 30 "lifecycle/output?entry=$entry&offset=$((max_output + more - 1))" "$tmp.piece"; }
  rm -rf "$work" "$home/cwd"
}

# run_list LIST [REASON]: up to the first script that fails, or in a boot is none for the host. The end of one is told with the next.
run_list() {
  fetch_all "run-lists/$1" "$home/scripts" && fetch_inputs "$1" || return 1
  for file in "$home/scripts"/*; do
    [ -e "$file" ] || return 0
    [ ! -e "$late" ] || return 1
    entry=$1/${file##*/}
    say started ",\"entry\":\"$entry\"" && tell ask
    [ -z "$refused" ] || [ "$1" != boot ] || return 1
    run_script "${file##*/}" "$file" "${2-}"
    note_finished "$code"
    [ "$code" -eq 0 ] || return 1
  done
}

work() { # boot | command ENTRY SCRIPT
  load
  if [ "$1" = boot ]; then
    : >"$dir/events" && say booting && tell insist
    if run_list boot; then state=operational; else state=stranded; fi
    entry='' && say "$state" && tell insist
    [ -z "$refused" ] || [ "$state" = stranded ] || { state=stranded && say stranded; }
  else
    code=126 && say started ",\"entry\":\"$entry\"" && tell ask
    [ -z "$refused" ] && fetch "run-lists/operational/$3" "$home/command" && chmod 700 "$home/command" && fetch_inputs operational && run_script "$3" "$home/command"
    say_finished "$code"
  fi
  tell insist
  rm -f "$dir/worker" "$tmp".*
}
start_work() {
  # A worker that was killed has left its files; they are named by its process.
  [ -z "$worker" ] || rm -f "$dir/$worker".*
  entry=${2-} && save && : >"$dir/child"
  sh "$self" work "$@" &
  worker=$! && echo "$worker" >"$dir/worker"
}
is_working() { [ -e "$dir/worker" ] && kill -0 "$(cat "$dir/worker")" 2>/dev/null; }
# One that another process of the agent began is no child of this one.
await_work() { [ -z "$worker" ] || wait "$worker" 2>/dev/null; while is_working; do sleep 1; done; }
end_script() {
  [ -s "$dir/child" ] && read -r group <"$dir/child" || return 0
  kill -TERM "-$group" 2>/dev/null || kill -TERM "$group" 2>/dev/null
  (sleep 5 && [ "$(cat "$dir/child")" = "$group" ] && { kill -KILL "-$group" || kill -KILL "$group"; }) 2>/dev/null &
}
# limit_list SECONDS: ends the scripts of the decommission list after that time. systemd's own limit is later, since it ends the agent, too.
limit_list() {
  read_uptime && end=$((up + $1)) group=''
  while sleep 1 && read_uptime; do
    [ "$up" -ge "$end" ] || continue
    : >"$late"
    # Once for each script: the next one may have begun just now.
    [ "$(cat "$dir/child" 2>/dev/null)" = "$group" ] || end_script
  done
}
read_uptime() { read -r up _ </proc/uptime && up=${up%.*}; }
# Why the system goes down, by its own word: reboot, shutdown, or service_restart when it does not. sysvinit has its runlevel for that;
# OpenRC has one runlevel for both, and a variable for a reboot, which busybox' init does not give.
word_of_system() {
  [ -d "$system" ] || case ${RUNLEVEL-}:${RC_REBOOT-}:${RC_RUNLEVEL-} in
  6:* | *:YES:* | *:reboot) echo reboot ;;
  0:* | *:shutdown) echo shutdown ;;
  *) echo service_restart ;;
  esac
  [ ! -d "$system" ] || case $(${limited:+"$limited" 10} systemctl list-jobs --no-legend --no-pager 2>/dev/null) in
  *reboot.target* | *kexec.target*) echo reboot ;;
  *poweroff.target* | *halt.target*) echo shutdown ;;
  *) echo service_restart ;;
  esac
}

decommission() { # WORD: a shutdown is what the host calls it, and `stop` where it says nothing
  load && before=$state kind=$1 patience=5 long=5
  # Saved before the worker ends: `obey` may be waiting for that.
  case $state in operational | stranded) state=decommissioning entry='' last='' && save ;; esac
  [ ! -e "$dir/worker" ] || kill "$(cat "$dir/worker")" 2>/dev/null
  end_script
  case $before in operational | stranded) ;; *) return 0 ;; esac
  limit=180 && ask 5 lifecycle.json && read_status
  case $kind:$wanted in shutdown:stop | shutdown:terminate) kind=${wanted_kind:-$wanted} ;; shutdown:*) kind=stop ;; esac
  say decommissioning ",\"kind\":\"$kind\"" && tell ask
  rm -f "$late"
  limit_list "$limit" &
  limiter=$!
  run_list decommission "$kind"
  kill "$limiter" && wait "$limiter" 2>/dev/null
  state=decommissioned entry='' && if [ -e "$late" ]; then say decommissioned ',"timedOut":true'; else say decommissioned; fi
  tell insist
  # The service alone began anew: this boot's list has been run.
  [ "$kind" != service_restart ] || { state=$before && save; }
}
go_down() { # WORD COMMAND
  last=$wanted_entry && save
  if [ -d "$system" ]; then systemctl "$2"; else decommission "$1" && "$2"; fi
}
# Does what the host wants, or fails when it is to be asked once more. What it does not know is said again: it may have forgotten it.
obey() {
  load
  [ "$run" = "$host_run" ] || state=''
  case $state in
  '') state=booting run=$host_run boot=$now number=0 last='' && start_work boot && return ;;
  operational | stranded) ;;
  *) return ;;
  esac
  if [ -n "$entry" ]; then
    [ "$entry" != "$wanted_entry" ] || return 0
    # It may be about to begin, or to end. A worker that was killed says nothing more.
    until [ -s "$dir/child" ] || ! is_working; do sleep 1; done
    end_script
    await_work
    load && { [ -z "$entry" ] || say_finished 143; }
    return 1
  fi
  # One whose last word is on its way forgets what was said until then, and that it is at work.
  await_work && load
  [ "$at_host" = "$state" ] || say "$state"
  tell ask
  [ "$wanted_entry" != "$last" ] || return 0
  case $wanted in
  run) start_work command "$wanted_entry" "$wanted_script" ;;
  reboot) go_down reboot reboot ;;
  stop | terminate) go_down shutdown poweroff ;;
  esac
}
# lift SECONDS: how long systemd lets the agent run its decommission list, and a system that goes down. The agent ends the list by itself,
# and has a minute to say so.
lift() {
  mkdir -p "$system/rightlink.service.d" "$system/reboot.target.d" "$system/poweroff.target.d" "$system/halt.target.d"
  printf '[Service]\nTimeoutStopSec=%s\n' "$(($1 + 60))" >"$system/rightlink.service.d/limit.conf"
  for target in reboot poweroff halt; do
    printf '[Unit]\nJobTimeoutSec=%s\n' "$(($1 > 1500 ? $1 + 300 : 1800))" >"$system/$target.target.d/rightlink.conf"
  done
  systemctl daemon-reload
}

# Starts the agent once, behind cloud-init, whose last stage may have called this.
start() {
  is_running && return
  (
    tries=600
    while [ -d /run/cloud-init ] && [ ! -e /run/cloud-init/result.json ] && [ "$((tries -= 1))" -ge 0 ]; do sleep 1; done
    exec ${own_session:+"$own_session"} sh "$self" run
  ) </dev/null >/dev/null 2>&1 &
  echo "$! $now" >"$dir/main"
}
# In a system that keeps /run, another process may have the number.
is_running() {
  read -r now </proc/sys/kernel/random/boot_id
  [ -s "$dir/main" ] && read -r main main_boot <"$dir/main" && [ "$main_boot" = "$now" ] && kill -0 "$main" 2>/dev/null
}
stop() {
  decommission "$(word_of_system)"
  is_running && { kill -TERM "-$main" || kill -TERM "$main"; } 2>/dev/null
  rm -f "$dir/main"
}

run() {
  await_tool
  is_working || rm -f "$dir"/[0-9]*.*
  load && echo "$$ $now" >"$dir/main"
  # An agent that ended in the middle of a script does not run it again.
  [ -z "$entry" ] || [ -z "$state" ] || say_finished 143
  [ "$state" != booting ] || { state=stranded && say stranded; }
  lifted=180 pause=1 etag=0
  while :; do
    ask 3700 "lifecycle.json?wait_for_change=true&timeout_sec=3600&last_etag=$etag"
    if [ "$status" = 200 ] && read_status; then
      pause=1 known=$etag && obey || known=0
      [ ! -d "$system" ] || [ "$limit" = "$lifted" ] || { lift "$limit" && lifted=$limit; }
      etag=$known
    else sleep "$pause" && pause=$((pause < 8 ? pause * 2 : 8)) etag=0; fi
  done
}

mkdir -p "$home" "$dir"
find_tool
case ${1-} in
start | stop) "$1" ;;
decommission) decommission "$(word_of_system)" ;;
work) shift && work "$@" ;;
*) run ;;
esac
