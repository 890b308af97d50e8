#!/bin/sh
# Brings a bare Debian machine to where the programs run: Debian packages, npm packages with Node 26, launchers. Does nothing when all is there.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
sh scripts/host-packages.sh
stamp=node_modules/.lock-stamp
if ! cmp -s package-lock.json "$stamp" 2>/dev/null; then
  echo 'setup: installing npm packages'
  npm ci --no-audit --no-fund --loglevel=error
  sh scripts/link-programs.sh
  cp package-lock.json "$stamp"
else
  sh scripts/link-programs.sh
fi
