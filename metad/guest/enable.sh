#!/bin/sh
# Has the guest's agent (metad/guest/agent.sh) run now and in later boots: curl -s http://169.254.169.254/ganeti/latest/guest/enable | sh
# It may be run in every boot. It is one function, so that a part of it does nothing.
gnt_enable() {
  home=/var/lib/rightlink
  unit=rightlink.service
  if [ "$(id -u)" != 0 ]; then
    echo 'guest/enable: only root can do this' >&2
    return 1
  fi
  umask 077
  mkdir -p "$home" && cat >"$home/agent.new" <<'GNT_AGENT_END' || return
@AGENT@
GNT_AGENT_END
  mv "$home/agent.new" "$home/agent" || return
  if [ ! -d /run/systemd/system ]; then
    # It is asked for in each boot. Called by cloud-init's last stage, it is not the last that this does.
    main=/run/rightlink/main
    [ ! -e "$main" ] || ! kill -0 "$(cat "$main")" 2>/dev/null || return 0
    (
      tries=600
      while [ -d /run/cloud-init ] && [ ! -e /run/cloud-init/result.json ] && [ "$tries" -gt 0 ]; do
        sleep 1
        tries=$((tries - 1))
      done
      exec $(command -v setsid) sh "$home/agent" run
    ) </dev/null >/dev/null 2>&1 &
    return 0
  fi
  cat >"$home/$unit" <<END
[Unit]
Description=Run lists of the host
# Behind multi-user.target: it is stopped before everything that a system of its own has.
After=multi-user.target cloud-final.service network-online.target

[Service]
ExecStart=/bin/sh $home/agent run
ExecStop=/bin/sh $home/agent decommission
# The agent ends its list after 180 s.
TimeoutStopSec=240
# What is killed for want of memory is to be there when the system goes down.
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
END
  if ! cmp -s "$home/$unit" "/etc/systemd/system/$unit"; then
    cp "$home/$unit" "/etc/systemd/system/$unit" && chmod 644 "/etc/systemd/system/$unit" || return
    systemctl daemon-reload && systemctl --quiet enable "$unit" || return
  fi
  systemctl --no-block start "$unit"
}
gnt_enable </dev/null
