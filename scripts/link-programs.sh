#!/bin/sh
# Links Node 26 and the programs into node_modules/.bin, so that `npx gnt-…` runs this checkout without an install step.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
bin=$top/node_modules/.bin
[ -d "$top/node_modules" ] || exit 0
mkdir -p "$bin"
case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) echo "error[UNSUPPORTED_MACHINE]: no Node 26 package for $(uname -m)" >&2; exit 2 ;;
esac
# npm 10 loses this link when both architectures are optional dependencies.
[ -x "$bin/node" ] || ln -sf "../node-linux-$arch/bin/node" "$bin/node"
for name in noded metad instance backup image os cluster node job profile network bootenv group debug appliance channel; do
  ln -sf ../../scripts/gnt "$bin/gnt-$name"
done
