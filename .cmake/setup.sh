# Sourced by ./dev: setup() installs what the build needs, and configures build/. What is done already is skipped:
# stamps in .cache are named after a hash of all that went in.

say() { printf '[%(%H:%M:%S)T] %s\n' -1 "$*" >&2; }
fail() { printf 'dev: %s\n' "$*" >&2; exit 2; }
listed() { grep -hv '^#' "$@"; }
log=.cache/setup.log

# Runs a command that would say too much; shows the end of it where it fails.
quietly() { "$@" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "failed: $*  (all of it: $log)"; }; }

# debian PACKAGE...: installs those that are not there.
debian() {
  local missing root=()
  mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | awk '$1 == "ii" {print $2}' | sort -u))
  [ ${#missing[@]} = 0 ] && return
  command -v apt-get >/dev/null || fail "no apt-get here; install these first: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "run as root, as there is no sudo: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "apt-get install ${missing[*]}"
  "${root[@]}" apt-get update -qq >>"$log" 2>&1 || say "apt-get update failed: going on with the lists that are here"
  quietly "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Pictures are looked at in a browser. Debian has one without a window; elsewhere (Ubuntu's is a snap) one that is installed
# serves, and where there is none that test is skipped and says so.
browser() {
  local name
  for name in chromium-headless-shell chromium chromium-browser google-chrome chrome; do
    command -v "$name" >/dev/null && return
  done
  if apt-cache show chromium-headless-shell >/dev/null 2>&1; then
    (debian chromium-headless-shell fonts-dejavu-core) || say "no browser could be installed: its test will be skipped"
  else
    say "no browser here: install Chromium or Chrome for the test of the pictures"
  fi
}

# True where a CUDA 13 toolkit has both NVRTC and its headers.
has_toolkit() {
  local root
  for root in ${CUDA_HOME:-} /usr/local/cuda; do
    [ -e "$root/include/nvrtc.h" ] && [ -e "$root/include/cuda.h" ] && compgen -G "$root/lib*/libnvrtc.so.13" >/dev/null && return
  done
  return 1
}

has_pytorch() {
  "$1" -c 'import torch, sys; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 11))' 2>/dev/null
}

# Where pip puts what PYTHON installs.
packages_of() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

python_environment() {
  local want=() site=()
  has_toolkit || want+=('nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*')
  # An installed PyTorch is used as it is.
  if has_pytorch python3; then site=(--system-site-packages); else want+=('torch==2.13.0'); fi
  say "python environment .venv${want:+ with ${want[*]}}"
  rm -rf .venv
  quietly python3 -m venv "${site[@]}" .venv
  # Where python3 is itself an environment's, the option leads past that environment's packages.
  [ ${#site[@]} = 0 ] || packages_of python3 >"$(packages_of .venv/bin/python)/installed_pytorch.pth"
  quietly .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off "${want[@]}" $(listed .cmake/python.txt)
  quietly .venv/bin/python -c 'import torch, pybind11, pytest, hypothesis, numpy'
}

# stamped NAME HASH-INPUT COMMAND...: runs COMMAND unless it ended well before with the same input.
stamped() {
  local stamp=.cache/$1-$(sha256sum <<<"$2" | cut -c1-16)
  shift 2
  [ -e "$stamp" ] && return
  rm -f "${stamp%-*}"-*
  "$@"
  touch "$stamp"
}

setup() {
  mkdir -p .cache
  : >"$log"
  debian $(listed .cmake/debian.txt)
  browser
  [ -x .venv/bin/python ] || rm -f .cache/python-*
  stamped python "$(cat .cmake/python.txt .cmake/setup.sh; command -v python3; python3 -V; has_toolkit && echo toolkit)" python_environment
  [ -e build/build.ninja ] || rm -f .cache/configure-*
  stamped configure "$(ls .cache/python-*; pwd)" configure
}

configure() {
  say "cmake --preset dev"
  quietly cmake --preset dev --fresh
}
