// Each kernel has one idea; `benchmarks/memory/__main__.py` says what each measures.

__device__ __forceinline__ unsigned somewhere(unsigned x, int bits) {  // a permutation of `bits` bits
  unsigned mask = bits >= 32 ? ~0u : (1u << bits) - 1;
  x = (x & mask) * 0x9E3779B1u & mask;
  x ^= x >> (bits / 2 + 1);
  x = x * 0x85EBCA6Bu & mask;
  return x ^ x >> (bits / 2);
}

// The place of the `turn`-th access of a thread: groups of 2^lanes neighbours go somewhere together.
__device__ __forceinline__ size_t place(int turn, int lanes, int bits, int words) {
  unsigned e = blockIdx.x * blockDim.x + threadIdx.x + turn * gridDim.x * blockDim.x;
  return (size_t)somewhere(e >> lanes, bits) * words + (e & ((1u << lanes) - 1));
}

extern "C" {
__global__ void load(const float* a, float* out, int lanes, int bits, int words, int turns) {
  float sum = 0;
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn) sum += __ldcg(&a[place(turn, lanes, bits, words)]);
  if (sum == -1.5f) out[0] = sum;
}

__global__ void store(float* a, float* out, int lanes, int bits, int words, int turns) {
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn) a[place(turn, lanes, bits, words)] = turn;
}

__global__ void add(float* a, float* out, int lanes, int bits, int words, int turns) {
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn) atomicAdd(&a[place(turn, lanes, bits, words)], 1.0f);
}

__global__ void add_and_return(float* a, float* out, int lanes, int bits, int words, int turns) {
  float sum = 0;
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn)
    sum += atomicAdd(&a[place(turn, lanes, bits, words)], 1.0f);
  if (sum == -1.5f) out[0] = sum;
}

// Blocks stream an array, and every `every`-th load is stored, too (none: 0). Each load is waited
// for; `waited` sums up these cycles, and `waits`, of one warp in 64, has them apart.
__global__ void stream(const float4* a, float4* b, unsigned long long* waited, unsigned* waits,
                       int turns, int every) {
  unsigned long long total = 0;
  float sum = 0;
  for (int turn = 0; turn < turns; ++turn) {
    size_t at = ((size_t)blockIdx.x * turns + turn) * blockDim.x + threadIdx.x;
    unsigned begun, ended;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(begun)::"memory");
    float4 x = __ldcg(&a[at]);
    float all = x.x + x.y + x.z + x.w;
    unsigned used = all == 1e30f;
    asm volatile("mov.u32 %0, %%clock; add.u32 %0, %0, %1;" : "=r"(ended) : "r"(used) : "memory");
    if (every && turn % every == 0) b[at] = x;
    total += ended - begun;
    sum += all;
    if (threadIdx.x == 0 && blockIdx.x % 8 == 0 && turn == 1) waits[blockIdx.x / 8] = ended - begun;
  }
  if (sum == -1.5f) b[0] = a[0];
  if (threadIdx.x % 32 == 0) atomicAdd(&waited[blockIdx.x & 1023], total);
}

// Each block notes when it begins, when it ends, and on which SM.
__global__ void blocks(long long* begun, long long* ended, int* sm, float* out, int turns) {
  long long first = clock64();
  unsigned mine;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(mine));
  float x = threadIdx.x;
  for (int turn = 0; turn < turns + 100 * (blockIdx.x % 7); ++turn) x = x * 1.0001f + 0.5f;
  if (x == -1.0f) out[0] = x;
  __syncthreads();
  long long last = clock64();
  if (threadIdx.x == 0) {
    begun[blockIdx.x] = first;
    ended[blockIdx.x] = last;
    sm[blockIdx.x] = mine;
  }
}

// Additions meet at 2^bits places, `apart` words from one to the next: at one of them all lanes of a
// warp (`together`), or each lane at its own choice.
__device__ __forceinline__ unsigned* met(unsigned* a, int turn, int bits, int apart, int together) {
  unsigned e = blockIdx.x * blockDim.x + threadIdx.x + turn * gridDim.x * blockDim.x;
  if (together) e >>= 5;
  e = (e ^ e >> 16) * 0x7feb352du;
  e = (e ^ e >> 15) * 0x846ca68bu;
  return a + (size_t)((e ^ e >> 16) & ((1u << bits) - 1)) * apart;
}

__global__ void meet_red(unsigned* a, unsigned* out, int bits, int apart, int together, int turns) {
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn)
    asm volatile("red.global.add.u32 [%0], %1;" ::"l"(met(a, turn, bits, apart, together)), "r"(turn) : "memory");
}

__global__ void meet_float(unsigned* a, unsigned* out, int bits, int apart, int together, int turns) {
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn)
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(met(a, turn, bits, apart, together)), "f"(1.0f) : "memory");
}

__global__ void meet_atom(unsigned* a, unsigned* out, int bits, int apart, int together, int turns) {
  unsigned sum = 0, old;
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn) {
    asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(met(a, turn, bits, apart, together)), "r"(turn) : "memory");
    sum += old;
  }
  if (sum == 12345) out[0] = sum;
}
}
