#!/bin/sh
# venv.sh PYTHON DIR: make the virtual environment; on Debian and Ubuntu its module is a package of its own.
set -eu
[ -x "$2/bin/python" ] && "$2/bin/python" -m pip --version >/dev/null 2>&1 && exit 0
"$1" -m venv "$2" 2>/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing python3-venv (Debian keeps it in a package of its own)"
    apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qy python3-venv >/dev/null
    exec "$1" -m venv --clear "$2"
fi
echo "cannot make a virtual environment with $1; on Debian or Ubuntu: sudo apt-get install python3-venv" >&2
exit 1
