set -u
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl && export PYTHONPATH=/tmp/site:$PWD PYTHONUNBUFFERED=1
cat > /tmp/rep.py <<'P'
import sys, time
from pathlib import Path
from atos_py import reproduce as R, generate, Graph
kind=sys.argv[1]; out=Path(sys.argv[2])
def scale_free():
    yield "Slashdot", Graph.load("shared/data/soc-Slashdot0902.txt.gz", symmetrize=True, deduplicate=True, remove_loops=True)
    yield "rmat22", generate.rmat(22)
def road():
    yield "New York", Graph.load("shared/data/USA-road-d.NY.gr.gz")
    yield "road4900", generate.road(4900)
t=time.time()
def progress(steps, d, n):
    print(f'{time.time()-t:.0f} s {d} {n}', flush=True)
    return steps
print(R.reproduce(out, {"scale": scale_free, "road": road}[kind](), repeat=10, progress=progress)); print(time.time()-t)
P
timeout 560 python3 /tmp/rep.py $1 /tmp/paper-$1; echo rc $?
cd /tmp && tar czf $OUT/paper-$1.tgz paper-$1
cat /tmp/paper-$1/*.md
