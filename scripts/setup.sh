#!/bin/sh
# Makes this checkout ready: `sh scripts/setup.sh [test]`. Says what is missing before it fetches anything, stops with
# the exact next step where it cannot go on, and can be run again at any time.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
extras=lab
[ "${1:-}" != test ] || extras=lab,test
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo '

stop() { # WHAT NEXT...
    printf '\nStopped: %s\nNext:\n' "$1"
    shift
    printf '    %s\n' "$@"
    exit 1
}

has() { command -v "$1" >/dev/null; }

find_python() { # sets PYTHON to the first one on PATH that is new enough
    for PYTHON in python3 python3.14 python3.13 python3.12 python3.11; do
        ! "$PYTHON" -IS -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || return 0
    done
    echo "Missing: Python 3.11 or newer (PATH has $(python3 --version 2>&1 || echo none))"
    for name in python3.14 python3.13 python3.12 python3.11 python3; do
        ! apt-cache show "$name-venv" >/dev/null 2>&1 || break
    done
    stop "PyBox needs Python 3.11 or newer." \
        "${sudo}apt-get update && ${sudo}apt-get install -y $name $name-venv" \
        "then run make again     (Debian 12, Ubuntu 22.04 and everything newer have such a Python)"
}

fingerprint() { # changes with the packages asked for, the place of .venv, its Python, and when PyBox is gone from it
    { echo "$PWD" && .venv/bin/python -IS --version && ls .venv/bin/pybox-kernel && cat pyproject.toml kernelspec/*/*; } \
        2>/dev/null | sha256sum
}

installed() { [ "$(cat ".venv/pybox-setup-$1" 2>/dev/null)" = "$(fingerprint)" ]; }

venv_works() { grep -qsF " $PWD/.venv" .venv/pyvenv.cfg && .venv/bin/python -c 'import pip' 2>/dev/null; }

fetch() { # MB WHAT: a line of the plan
    [ "$total_mb" != 0 ] || echo "Missing, and fetched now:"
    printf '    %4s MB  %s\n' "$1" "$2"
    total_mb=$((total_mb + $1))
}

need() { # MB PACKAGE: a line of the plan, for one of Debian's packages
    fetch "$1" "Debian package $2"
    packages="$packages $2"
}

# Debian's packages. A third-party source that cannot be read makes `update` fail, which matters only if `install` does.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    set -- -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -o Acquire::http::Timeout=20 \
        -o Acquire::https::Timeout=20
    apt-get "$@" update >/dev/null 2>&1 || { sleep 2 && apt-get "$@" update >/dev/null 2>&1; } ||
        echo "    (some of apt's sources could not be read; going on without them)"
    # shellcheck disable=SC2086  # a list of words
    if ! said=$(apt-get "$@" install -y --no-install-recommends $packages 2>&1); then
        printf '%s\n' "$said" | tail -n 15
        stop "apt could not install:$packages" "mend what apt says above, then run make again"
    fi
    case $packages in *docker-registry*) # only the tests start it; Debian's package would have it listen for ever
        [ ! -d /run/systemd/system ] || systemctl disable -q --now docker-registry ;;
    esac
}

# Look, and say what is missing ----------------------------------------------------------------------------------

echo "PyBox set-up: looking at what is here"
total_mb=0 packages=
find_python
export PYTHON
case $("$PYTHON" -IS scripts/engine_state.py 1) in
absent | refused)
    has dockerd || [ -n "${DOCKER_HOST:-}" ] || need 66 docker.io
    ;;
esac
if ! installed $extras; then
    if ! venv_works && ! "$PYTHON" -IS -c 'from ensurepip import version' 2>/dev/null; then
        need 3 "$("$PYTHON" -IS -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    fi
    installed lab || fetch 55 "Python packages from PyPI, JupyterLab among them, into .venv"
    [ $extras = lab ] || fetch 85 "Python packages for the tests"
fi
if [ ! -e .venv/pybox-box ]; then
    if [ -z "$sudo" ]; then # where the engine reaches no registry, the image is made of Debian's packages
        has mmdebstrap || need 1 mmdebstrap
        [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || need 1 debian-archive-keyring
    fi
    fetch 45 "the box image: a small Linux with Python"
fi
if [ $extras != lab ]; then
    [ -e .venv/pybox-data ] || fetch 60 "numpy, pandas and matplotlib for a box of the tests"
    has docker-registry || need 5 docker-registry
    has crun || need 1 crun
    has chromium || need 100 chromium
    if [ "$(uname -m)" = x86_64 ]; then # the private machine
        has qemu-system-x86_64 || need 60 qemu-system-x86
        has socat || need 1 socat
        has ssh || need 1 openssh-client
        has mmdebstrap || [ ! -e .venv/pybox-box ] || need 1 mmdebstrap
        [ -e /sbin/mke2fs ] || need 1 e2fsprogs
    fi
fi

if [ $total_mb = 0 ]; then
    echo "Nothing is missing"
else
    [ -z "$packages" ] || fetch 16 "apt's lists of packages"
    echo "About $total_mb MB and $((total_mb / 60 + 1)) min in all"
fi

# Fetch, start and build -----------------------------------------------------------------------------------------

if [ -n "$packages" ]; then
    has apt-get || stop "there is no apt here to install:$packages" \
        "install them, or their like, in this system's own way, then run make again"
    [ -z "$sudo" ] || stop "only root can install:$packages" \
        "sudo apt-get update && sudo apt-get install -y --no-install-recommends$packages" \
        "then run make again"
    echo "Installing Debian's packages:$packages"
    apt_install
fi

sh scripts/engine.sh

if ! installed $extras; then
    echo "Installing Python packages into .venv"
    venv_works || "$PYTHON" -m venv --clear .venv || stop "$PYTHON could not make .venv (its words are above)." \
        "PATH=/usr/bin:\$PATH make setup     (to use the system's own Python)"
    .venv/bin/python -m pip install -qq --disable-pip-version-check -e ".[$extras]" ||
        stop "pip could not install the packages (its words are above)." \
            "see that PyPI can be reached (behind a proxy: export HTTPS_PROXY=http://...), then run make again"
    for done in lab $extras; do fingerprint >".venv/pybox-setup-$done"; done
fi

# shellcheck disable=SC2046  # no word, or two
.venv/bin/pybox-kernel setup --yes --base "${PYBOX_BASE:-auto}" $([ $extras = lab ] || echo --with data)
.venv/bin/pybox-kernel install --sys-prefix
touch .venv/pybox-box
[ $extras = lab ] || touch .venv/pybox-data
echo "Ready: make demo shows it in this terminal, make lab opens JupyterLab"
