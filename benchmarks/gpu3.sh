set -u
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl && export PYTHONPATH=/tmp/site:$PWD PYTHONUNBUFFERED=1
timeout 200 python3 benchmarks/bfs.py rmat:22:16 --worker cta --fetch 128 256 512 --threads 128 256  --repeat 5; echo rc $?
for b in 132 264 528 0; do timeout 200 python3 benchmarks/bfs.py road:4900:0.62 --worker cta --fetch 32 128 --threads 64 128 256 --blocks $b --repeat 2; done
timeout 100 python3 benchmarks/bfs.py road:4900:0.62 --worker warp --fetch 32 --threads 64 128 256 --blocks 132 528 0 --repeat 2; echo rc $?
timeout 100 python3 benchmarks/against_cuda.py rmat:22:16:128:256 road:4900:0.62:128:256; echo rc $?
