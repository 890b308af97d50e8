#!/bin/sh
# Installs the Debian packages that the product (and, with the rest of the list, its tests) runs on. Prints nothing when all are there.
set -eu
product='netbase libatomic1 binutils qemu-system-x86 qemu-utils iproute2 nftables mmdebstrap squashfs-tools cpio lz4 zstd xz-utils bzip2 e2fsprogs mtools curl ca-certificates openssl busybox-static'
# DHCP and names of networks that a node makes (gnt-network connect … nat): nothing else needs it, and it brings others along.
networks='dnsmasq-base'
# The browser of the web page's tests, the tools of the package build, the demo guest's boot loader, the foreign clients that tests run against the service, the shells that complete our commands, and the checker of manual pages.
tests='apt-utils attr dpkg-dev lvm2 strace wrk python3 btrfs-progs xfsprogs grub-pc-bin gdisk fdisk redis-server redis-sentinel ovmf udhcpc isc-dhcp-client arping openssh-client python3-ganeti-rapi zsh fish mandoc chromium'
missing=
for package in $product $networks $tests; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
  echo "error[NOT_ROOT]: Debian packages are missing:$missing" >&2
  echo 'hint: run this as root, or install them yourself' >&2
  exit 2
fi
echo "setup: installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
# Redis must not start as a service here: tests start their own on private ports. A policy that exists already is the administrator's.
policy=/usr/sbin/policy-rc.d
made=
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  made=yes
fi
trap '[ -z "$made" ] || rm -f "$policy"' EXIT
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing </dev/null >/dev/null
