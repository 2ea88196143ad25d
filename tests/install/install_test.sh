#!/usr/bin/env bash
# find_package(mercer) from outside: install, configure, build, run, and check what was installed.
# Usage: install_test.sh SOURCE_FOLDER BUILD_FOLDER CMAKE CXX
set -euo pipefail
source_folder=$1 build_folder=$2 cmake=$3 compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "install test: $*" >&2; exit 1; }

"$cmake" --install "$build_folder" --prefix "$work/prefix" >"$work/install.log" ||
  { cat "$work/install.log"; fail "cmake --install failed"; }

# The package must not remember the folders it was built in, nor full paths of libraries.
package=$(find "$work/prefix" -name mercerConfig.cmake)
[ -n "$package" ] || fail "mercerConfig.cmake was not installed"
package_folder=$(dirname "$package")
if grep -rnF -e "$source_folder" -e "$build_folder" "$package_folder"; then
  fail "the package files name the source or build folder"
fi
if grep -rnE '/[^ ;"]*\.(so|a)\b' "$package_folder" | grep -vF -e '${_IMPORT_PREFIX}'; then
  fail "the package files name libraries by a full path"
fi

"$cmake" -S "$source_folder/tests/install/outside" -B "$work/outside" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log" 2>&1 ||
  { cat "$work/configure.log"; fail "find_package(mercer) failed"; }
"$cmake" --build "$work/outside" >"$work/build.log" 2>&1 ||
  { cat "$work/build.log"; fail "the outside program does not build"; }
"$work/outside/outside" || fail "the outside program failed"

if [ -x "$work/prefix/bin/mercer" ]; then
  "$work/prefix/bin/mercer" --version || fail "the installed program does not run"
fi
