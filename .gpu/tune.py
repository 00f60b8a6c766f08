import sys, time, json, os
sys.path.insert(0, "."); sys.path.insert(0, ".gpu")
import numpy as np
from gemmlab import Gemm, Tiling, kernels
from gemmlab.backends import gpu
from gemmlab.backends.checking import check
import wt_unrolled
from dataclasses import replace
U = replace(wt_unrolled.warp_tiled, name="warp_tiled_u")
T = lambda b, w, t, s=1: Tiling(block=b, warp=w, thread=t, stages=s)
P = kernels.pipelined; W = kernels.warp_tiled
pt = [T((128,256,8),(64,64),(16,8),4), T((128,256,8),(64,64),(16,8),3), T((128,256,16),(64,64),(16,8),3)]
wt = [T((128,128,8),(64,32),(8,8)), T((128,128,8),(64,64),(16,8)), T((128,256,8),(64,64),(16,8)), T((128,128,16),(64,32),(8,8))]
t0 = time.time(); out = []
def go(problem, cases, rounds=12):
    operands, matrices = problem.operands(), gpu.Matrices(problem)
    rs = []
    for k, t in cases:
        try:
            r = gpu.Runner(k, problem, t, matrices); e = check(problem, r.compute, operands); rs.append((k, t, r, e.error))
        except Exception as x: print("FAIL", k.name, t, repr(x)[:300], flush=True)
    times = np.array([[r.sample() for _, _, r, _ in rs] for _ in range(2 + rounds)])[2:]
    med = np.median(times, axis=0); ref = next((m for (k, *_), m in zip(rs, med) if k.name == "cublas"), med[0])
    for (k, t, r, e), m in zip(rs, med):
        res = r.resources
        print(f"{problem} | {k.name} {t} | {problem.flops/m/1e12:.2f} TF | {ref/m:.3f} | err {e/problem.tolerance:.2g} | regs {res.get('registers')} local {res.get('local_bytes')} warps {res.get('warps_per_sm')} | {time.time()-t0:.0f}s", flush=True)
        out.append((str(problem), k.name, str(t), m))
n = 4096
C = (kernels.cublas, None)
for lay in ("nn", "nt", "tn", "tt"):
    go(Gemm(n, n, n, layout=lay), [C] + [(P, t) for t in (pt if lay in ("nn", "nt") else [pt[0], pt[2]])])
go(Gemm(n, n, n), [C, (kernels.vectorised, kernels.vectorised.default)] + [(k, t) for t in wt for k in (W, U)])
n = 8192
for lay in ("nn", "nt"):
    go(Gemm(n, n, n, layout=lay), [C] + [(P, t) for t in pt], 6)
json.dump(out, open(os.environ["OUT"] + "/tune.json", "w"))
