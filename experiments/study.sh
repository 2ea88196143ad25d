# What the studies share; source it from a `run` script. Sets root, mercer, data and results.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mercer=${MERCER:-$root/build/mercer}
data=${MERCER_DATA:-$root/../shared/data}
if [ ! -x "$mercer" ]; then
  echo "no program at build/mercer: run 'make build' first" >&2
  exit 1
fi
if [ ! -d "$data" ]; then
  echo "skipped: no data folder; set MERCER_DATA to the folder with the data sets"
  exit 0
fi
results=$(cd "$(dirname "$0")" && pwd)/results
mkdir -p "$results"
