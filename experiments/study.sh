# What the studies share; source it from a `run` script. Sets root, mercer, data, results, folder (removed at the end) and smoke.
#   run smoke       the same study in seconds, on small simulated data, to see that it still runs: smoke is 1, results go to
#                   $SMOKE_RESULTS or nowhere. Numbers mean nothing then.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mercer=${MERCER:-$root/build/mercer}
if [ ! -x "$mercer" ]; then
  echo "no program at build/mercer: run 'make build' first" >&2
  exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
smoke=""
if [ "${1:-}" = smoke ]; then
  smoke=1
  shift
  data=$folder/data
  results=${SMOKE_RESULTS:-$folder/results}
  mkdir -p "$data"
else
  data=${MERCER_DATA:-$root/../shared/data}
  results=$(cd "$(dirname "$0")" && pwd)/results
fi
if [ ! -d "$data" ]; then
  echo "skipped: no data folder; set MERCER_DATA to the folder with the data sets"
  exit 0
fi
mkdir -p "$results"

# simulate KIND NAME...: data sets of these names for a smoke run, 120 rows each. KIND: numbers (8 inputs), plane (2 inputs),
# classes (0 and 1), codes (1 and 2) or digits (0 to 9).
simulate() {
  local kind=$1 name words change='{ print }'
  shift
  case $kind in
    numbers) words=(friedman -d 8) ;;
    plane) words=(field) ;;
    classes) words=(gp -d 3 --likelihood bernoulli-logit --signal-variance 4) ;;
    codes)
      words=(gp -d 3 --likelihood bernoulli-logit --signal-variance 4)
      change='NR > 1 { $NF = $NF + 1 } { print }'
      ;;
    digits)
      words=(friedman -d 8)
      change='NR > 1 { y = int($NF / 3); $NF = y < 0 ? 0 : y > 9 ? 9 : y } { print }'
      ;;
  esac
  for name in "$@"; do
    "$mercer" generate "${words[@]}" -n 120 --seed 1 --quiet | awk -F, -v OFS=, "$change" | gzip > "$data/$name.csv.gz"
  done
}

# needs_sklearn WHAT: true when Python has scikit-learn; else says in a sentence that WHAT is skipped. Python is $python.
python=${PYTHON:-/usr/bin/python3} # scikit-learn is a Debian package of the system's Python
needs_sklearn() {
  "$python" -c 'import sklearn' 2> /dev/null && return
  echo "skipped: $1 (scikit-learn is not installed for $python)"
  return 1
}

# expected STATUS CODE...: a run of mercer ended with this exit status. Other codes than these are told, with what is in
# $folder/err, and end a smoke run.
expected() {
  local status=$1 code
  shift
  for code in "$@"; do [ "$status" -ne "$code" ] || return 0; done
  echo "a run of mercer ended with exit code $status" >&2
  [ ! -s "$folder/err" ] || cat "$folder/err" >&2
  [ -z "$smoke" ] || exit 1
}
