#!/usr/bin/env bash
# Builds and tests on a machine with a GPU and without network. Bring the folder .deps along, which .cmake/fetch-debs
# fills. Its packages are unpacked to $FUSEBOX_DEPS (default /tmp/deps), not installed.
#
#   tests/gpu/run.sh [options of tests/gpu/corpus.py]
#   tests/gpu/run.sh mutants --run DIR [--jobs 16] [--limit 9m]     the mutation score: tests/mutants/README.md
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
deps=${FUSEBOX_DEPS:-/tmp/deps}
if [ ! -d "$deps/usr" ]; then
  for deb in .deps/*.deb; do dpkg-deb -x "$deb" "$deps"; done
fi
export CMAKE_PREFIX_PATH=$deps/usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
export LD_LIBRARY_PATH=$deps/usr/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$deps/usr/bin:$PATH
if [ "${1:-}" = mutants ]; then exec ./dev "$@"; fi
exec ./dev gpu-test "$@"
