#!/usr/bin/env bash
# mercer from outside: installed, then used by C and C++ programs, static and shared, found by CMake
# and by pkg-config. Also what is installed: headers that need no JSON library, and no more symbols
# than the public interface.
# Usage: install_test.sh SOURCE_FOLDER BUILD_FOLDER CMAKE CXX CC PYTHON
set -euo pipefail
source_folder=$1 build_folder=$2 cmake=$3 cxx=$4 cc=$5 python=$6
here=$source_folder/tests/install
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() { echo "install test: $*" >&2; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "'$*' failed"; }; }

quietly "$cmake" --install "$build_folder" --prefix "$prefix"
library=$(dirname "$(find "$prefix" -name libmercer.so)")
[ -f "$library/libmercer.a" ] || fail "libmercer.a and libmercer.so are not both installed"

# The package files must not remember the folders of the build, nor full paths of libraries.
config=$library/cmake/mercer
[ -f "$config/mercerConfig.cmake" ] || fail "mercerConfig.cmake was not installed"
if grep -rnF -e "$source_folder" -e "$build_folder" "$config" "$library/pkgconfig"; then
  fail "the package files name the source or build folder"
fi
if grep -rnE '/[^ ;"]*\.(so|a)\b' "$config" | grep -vF -e '${_IMPORT_PREFIX}'; then
  fail "the package files name libraries by a full path"
fi

"$python" "$here/headers_test.py" "$prefix/include" "$cxx" || fail "a header"
"$python" "$here/symbols_test.py" "$library/libmercer.so" "$prefix/include" || fail "a symbol"

# The programs run where the library is, wherever it was built.
run() { (cd "$work" && LD_LIBRARY_PATH=$library "$@" 2>/dev/null) || fail "$* failed"; }
needs_shared() { readelf -d "$1" | grep -q 'NEEDED.*libmercer\.so'; }

# CMake: one build, linked twice.
example=$work/example
for kind in mercer shared; do
  quietly "$cmake" -S "$source_folder/examples/embedding" -B "$example" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_FLAGS=-O1 \
    -DCMAKE_PREFIX_PATH="$prefix" -DMERCER_LIBRARY="mercer::$kind"
  quietly "$cmake" --build "$example"
  for program in fit_cpp fit_c; do
    if needs_shared "$example/$program"; then linked=shared; else linked=mercer; fi
    [ "$linked" = "$kind" ] || fail "$program is linked with $linked, not with $kind"
    echo "CMake, $kind, $program:"
    run "$example/$program"
  done
done

# pkg-config: the shared library, then the archive of an installation without it.
export PKG_CONFIG_PATH=$library/pkgconfig
command -v pkg-config >/dev/null || fail "pkg-config is not installed"
[ "$(pkg-config --modversion mercer)" = "$("$prefix/bin/mercer" --version | cut -d' ' -f2)" ] ||
  fail "mercer.pc has another version than the program"
# A program with hidden visibility of its own still catches what the library throws.
quietly "$cxx" -std=c++20 -O1 -fvisibility=hidden $(pkg-config --cflags mercer) \
  -c "$here/rooms.cpp" -o "$work/rooms.o"
quietly "$cc" -std=c11 -Wall -Wextra -Werror -pedantic $(pkg-config --cflags mercer) \
  -c "$source_folder/examples/embedding/fit.c" -o "$work/fit.o"
quietly "$cxx" "$work/rooms.o" -o "$work/rooms_shared" $(pkg-config --libs mercer)
quietly "$cc" "$work/fit.o" -o "$work/fit_shared" $(pkg-config --libs mercer) -lm
for program in rooms_shared fit_shared; do
  needs_shared "$work/$program" || fail "$program is not linked with the shared library"
  echo "pkg-config, $program:"
  run "$work/$program"
done
rm "$library"/libmercer.so*
quietly "$cxx" "$work/rooms.o" -o "$work/rooms_static" $(pkg-config --static --libs mercer)
quietly "$cc" "$work/fit.o" -o "$work/fit_static" $(pkg-config --static --libs mercer)
for program in rooms_static fit_static; do
  ! needs_shared "$work/$program" || fail "$program is not linked with the archive"
  echo "pkg-config, $program:"
  run "$work/$program"
done
