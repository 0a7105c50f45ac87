#!/bin/sh
# Install what the rig needs, when we are root on Debian or Ubuntu; otherwise say what will be left out.
set -eu
missing=
for package in $PACKAGES; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done 2>/dev/null
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing for the real-Slurm tests:$missing"
    # Its daemons must not start by themselves: the rig runs its own, in its own folders.
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    if apt-get update -q >/dev/null 2>&1 && apt-get install -qy --no-install-recommends $missing >/dev/null; then
        exit 0
    fi
    echo "could not install:$missing; the tests that need them are left out"
    exit 0
fi
echo "not root on Debian or Ubuntu: the real-Slurm tests are left out (missing:$missing)"
