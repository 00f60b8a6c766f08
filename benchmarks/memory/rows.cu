// Each kernel has one idea; `benchmarks/memory/rows.py` says what each measures.

typedef unsigned long long u64;
struct alignas(64) Map {
  char bytes[128];
};
constexpr int STAGES = 24, SIDE = 64, BYTES = SIDE * SIDE * 2, TRIES = 1 << 22;

extern "C" {
// One thread copies boxes of 64 x 64 halves by the TMA, 24 of them under way.
__global__ void __launch_bounds__(32) boxes(const __grid_constant__ Map map, int across, int down, int turns) {
  extern __shared__ __align__(1024) char room[];
  __shared__ u64 bars[STAGES];
  if (threadIdx.x) return;
  unsigned bar = __cvta_generic_to_shared(bars), to = __cvta_generic_to_shared(room);
  for (int s = 0; s < STAGES; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar + 8 * s));
  asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory");
  for (int i = 0; i < turns + STAGES; ++i) {
    int s = i % STAGES;
    if (i >= STAGES) {
      unsigned came = 0, parity = (i / STAGES - 1) & 1;
      for (int t = 0; !came; ++t) {
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(came) : "r"(bar + 8 * s), "r"(parity) : "memory");
        if (t > TRIES) __trap();
      }
    }
    if (i < turns) {
      int box = (int)((blockIdx.x + (u64)i * gridDim.x) % ((u64)across * down));
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar + 8 * s), "r"(BYTES) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to + BYTES * s), "l"(&map), "r"(box % across * SIDE), "r"(box / across * SIDE), "r"(bar + 8 * s) : "memory");
    }
  }
}

// Warps load the same, 16 bytes a lane, eight lanes for 128 bytes of a row.
__global__ void __launch_bounds__(1024) lanes(const char* a, u64 pitch, int across, int down, float* out, int turns) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
#pragma unroll 4
  for (int i = 0; i < turns; ++i) {
    int piece = (int)((blockIdx.x + (u64)i * gridDim.x) % ((u64)across * down));
    size_t row = piece / across * 128 + warp * 4 + lane / 8;
    float4 x = __ldcg((const float4*)(a + row * pitch + piece % across * 128 + lane % 8 * 16));
    sum += x.x + x.y + x.z + x.w;
  }
  if (sum == -1.5f) out[0] = sum;
}

// All blocks together read an array in order, again and again.
__global__ void __launch_bounds__(1024) again(const float4* a, u64 count, float* out, int turns) {
  u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x, stride = (u64)gridDim.x * blockDim.x;
  float sum = 0;
  for (int i = 0; i < turns; ++i)
#pragma unroll 4
    for (u64 k = at; k < count; k += stride) {
      float4 x = __ldcg(a + k);
      sum += x.x + x.y + x.z + x.w;
    }
  if (sum == -1.5f) out[0] = sum;
}
}
