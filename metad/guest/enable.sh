#!/bin/sh
# Has the guest's agent (metad/guest/agent.sh) run now and in later boots: curl -s http://169.254.169.254/ganeti/latest/guest/enable | sh
# It may be run in every boot. It is functions and a call of one, so that a part of it does nothing.
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
  if [ -d /run/systemd/system ]; then
    gnt_enable_unit || return
  else
    gnt_enable_init_script && sh "$home/agent" start || return
  fi
  command -v curl >/dev/null || command -v wget >/dev/null || {
    echo 'guest/enable: curl and wget are missing: run lists start when one of them is installed' >&2
    return 1
  }
}
# Each boot starts the agent, and each reboot and shutdown stops it before everything else.
gnt_enable_init_script() {
  script=/etc/init.d/rightlink
  if command -v rc-update >/dev/null; then
    cat >"$home/init" <<END
#!/sbin/openrc-run
description='Run lists of the host'
depend() {
  after *
  keyword -timeout
}
start() {
  ebegin 'Starting the agent for run lists'
  sh $home/agent start
  eend \$?
}
stop() {
  ebegin 'Running decommission scripts'
  sh $home/agent stop
  eend \$?
}
END
    gnt_install_init && rc-update -q add rightlink default
  elif command -v update-rc.d >/dev/null || command -v chkconfig >/dev/null; then
    cat >"$home/init" <<END
#!/bin/sh
# chkconfig: 2345 99 01
# description: Run lists of the host
### BEGIN INIT INFO
# Provides: rightlink
# Required-Start: \$all
# Required-Stop: \$remote_fs \$network \$syslog
# Default-Start: 2 3 4 5
# Default-Stop: 0 6
# Short-Description: Run lists of the host
### END INIT INFO
# Red Hat's rc stops only services that have such a file.
lock=/var/lock/subsys/rightlink
case \$1 in
start) [ ! -d /var/lock/subsys ] || : >\$lock; exec sh $home/agent start ;;
stop) rm -f \$lock; exec sh $home/agent stop ;;
restart | force-reload) sh $home/agent stop; exec sh $home/agent start ;;
*) echo "usage: \$0 start|stop|restart|force-reload" >&2; exit 2 ;;
esac
END
    gnt_install_init && if command -v update-rc.d >/dev/null; then update-rc.d rightlink defaults >/dev/null; else chkconfig --add rightlink; fi
  else
    echo 'guest/enable: neither systemd, OpenRC nor sysvinit was found: run guest/enable in each boot' >&2
    echo 'guest/enable: only the host can reboot this guest with its decommission scripts' >&2
  fi
}
gnt_install_init() { cp "$home/init" "$script" && chmod 755 "$script"; }
gnt_enable_unit() {
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
