// Loops of one idea each, for as long as is asked. `benchmarks/power/__main__.py` says what each measures.

#include <cuda_fp16.h>
#include <stdint.h>

typedef unsigned long long u64;

__device__ __forceinline__ u64 nanoseconds() {
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

__device__ __forceinline__ unsigned mixed(unsigned x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

// About normal, by the sum of four even ones.
__device__ __forceinline__ float normal(unsigned seed) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += mixed(4 * seed + i) * (1.0f / 4294967296.0f) - 0.5f;
  return 1.73f * sum;
}

// A turn of all threads of a block: thread 0 notes the time, and whether it is up.
struct Turns {
  u64 begun, until;
  u64* notes;
  int room, turn;
  unsigned* shared;

  __device__ Turns(u64 ns, u64* trace, int room, unsigned* shared) : room(room), turn(0), shared(shared) {
    begun = nanoseconds();
    until = begun + ns;
    notes = blockIdx.x % 33 == 0 ? trace + (size_t)(blockIdx.x / 33) * room * 2 : nullptr;
  }

  __device__ bool next() {
    __syncthreads();
    if (threadIdx.x == 0) {
      u64 now = nanoseconds();
      long long clock = clock64();
      if (notes && turn < room) {
        notes[2 * turn] = now;
        notes[2 * turn + 1] = clock;
      }
      *shared = now < until;
    }
    __syncthreads();
    ++turn;
    return *shared;
  }

  __device__ void end(u64* counts) {
    if (threadIdx.x == 0) atomicAdd(counts, (u64)(turn - 1));
  }
};

#define PARAMETERS u64 ns, u64 *trace, int room, u64 *counts, int inner, float scale, float4 *data, size_t size, int reads
#define BEGIN                                        \
  extern __shared__ __align__(1024) char bytes[];    \
  __shared__ unsigned going;                         \
  Turns turns(ns, trace, room, &going);              \
  [[maybe_unused]] unsigned seed = blockIdx.x * blockDim.x + threadIdx.x;

extern "C" {

__global__ void __launch_bounds__(1024) fill(float4* data, size_t size, float scale) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < size; i += (size_t)gridDim.x * blockDim.x)
    data[i] = make_float4(scale * normal(4 * i), scale * normal(4 * i + 1), scale * normal(4 * i + 2), scale * normal(4 * i + 3));
}

__global__ void __launch_bounds__(256, 1) rest(PARAMETERS) {
  BEGIN
  while (turns.next())
    for (int i = 0; i < inner; ++i) __nanosleep(1000);
  turns.end(counts);
}

// 8 x 8 products of numbers in registers, as a product's thread does them.
__global__ void __launch_bounds__(256, 1) fma32(PARAMETERS) {
  BEGIN
  float a[8], b[8], c[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    a[i] = scale * normal(seed * 16 + i);
    b[i] = scale * normal(seed * 16 + 8 + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) c[i][j] = 10 * scale * normal(seed * 64 + 8 * i + j);
  }
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(c[i][j]) : "f"(a[i]), "f"(b[j]));
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(c[i][j]) : "f"(-a[i]), "f"(b[j]));
    }
  turns.end(counts);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += c[i][j];
  if (sum == -1.5f) data[0].x = sum;
}

__global__ void __launch_bounds__(256, 1) fma64(PARAMETERS) {
  BEGIN
  double a[4], b[4], c[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    a[i] = scale * normal(seed * 8 + i) * 1.0000000123;
    b[i] = scale * normal(seed * 8 + 4 + i) * 1.0000000234;
#pragma unroll
    for (int j = 0; j < 4; ++j) c[i][j] = 10 * scale * normal(seed * 16 + 4 * i + j);
  }
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) asm volatile("fma.rn.f64 %0, %1, %2, %0;" : "+d"(c[i][j]) : "d"(a[i]), "d"(b[j]));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) asm volatile("fma.rn.f64 %0, %1, %2, %0;" : "+d"(c[i][j]) : "d"(-a[i]), "d"(b[j]));
    }
  turns.end(counts);
  double sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sum += c[i][j];
  if (sum == -1.5) data[0].x = sum;
}

// 16 chains of additions and logical operations of integers.
__global__ void __launch_bounds__(256, 1) alu(PARAMETERS) {
  BEGIN
  unsigned x[16], y = mixed(seed), z = mixed(seed + 77);
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] = mixed(seed * 16 + i);
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
#pragma unroll
      for (int i = 0; i < 16; ++i) asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(x[i]) : "r"(y), "r"(z));
#pragma unroll
      for (int i = 0; i < 16; ++i) asm volatile("add.u32 %0, %0, %1;" : "+r"(x[i]) : "r"(y));
    }
  turns.end(counts);
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) sum ^= x[i];
  if (sum == 1234567) data[0].x = sum;
}

#define HALVES(k) __floats2half2_rn(scale * normal(2 * (k)), scale * normal(2 * (k) + 1))
#define WORD(h) *reinterpret_cast<unsigned*>(&h)

// 4 x 4 products of 16 x 8 x 16 in half precision by a warp, summed in single.
__global__ void __launch_bounds__(256, 1) hmma(PARAMETERS) {
  BEGIN
  unsigned a[4][4], b[4][2];
  float c[4][4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      __half2 h = HALVES(seed * 24 + 6 * i + j);
      a[i][j] = WORD(h);
#pragma unroll
      for (int k = 0; k < 4; ++k) c[i][j][k] = 40 * scale * normal(seed * 64 + 16 * i + 4 * j + k);
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      __half2 h = HALVES(seed * 24 + 6 * i + 4 + j);
      b[i][j] = WORD(h);
    }
  }
  unsigned d[4][2];  // what takes back what b has added
#pragma unroll
  for (int i = 0; i < 8; ++i) d[i / 2][i % 2] = b[i / 2][i % 2] ^ 0x80008000u;
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                       : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                       : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(d[j][0]), "r"(d[j][1]));
    }
  turns.end(counts);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sum += c[i][j][0] + c[i][j][1] + c[i][j][2] + c[i][j][3];
  if (sum == -1.5f) data[0].x = sum;
}

// The same of 16 x 8 x 8 in TF32.
__global__ void __launch_bounds__(256, 1) hmma_tf32(PARAMETERS) {
  BEGIN
  unsigned a[4][4], b[4][2];
  float c[4][4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      a[i][j] = __float_as_uint(scale * normal(seed * 24 + 6 * i + j));
#pragma unroll
      for (int k = 0; k < 4; ++k) c[i][j][k] = 40 * scale * normal(seed * 64 + 16 * i + 4 * j + k);
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) b[i][j] = __float_as_uint(scale * normal(seed * 24 + 6 * i + 4 + j));
  }
  unsigned d[4][2];  // what takes back what b has added
#pragma unroll
  for (int i = 0; i < 8; ++i) d[i / 2][i % 2] = b[i / 2][i % 2] ^ 0x80000000u;
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                       : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                       : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(d[j][0]), "r"(d[j][1]));
    }
  turns.end(counts);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sum += c[i][j][0] + c[i][j][1] + c[i][j][2] + c[i][j][3];
  if (sum == -1.5f) data[0].x = sum;
}

// Rows of 128 bytes, swizzled by 128 bytes, eight of them 1024 bytes apart.
__device__ __forceinline__ u64 matrix(const void* at) {
  unsigned address = (unsigned)__cvta_generic_to_shared(at);
  return (u64)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define C8(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define C64(i) C8(i), C8(i + 8), C8(i + 16), C8(i + 24), C8(i + 32), C8(i + 40), C8(i + 48), C8(i + 56)
#define N64                                                                                                          \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"   \
  "%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57," \
  "%58,%59,%60,%61,%62,%63"
#define N128                                                                                                         \
  N64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,"    \
      "%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,"    \
      "%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define DONE                                              \
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); \
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory")

// Two warpgroups multiply 64 x 256 x 64 (half) or 64 x 256 x 32 (TF32) from shared memory, B the same.
#define WGMMA_256(NAME, KIND, TAIL, WORDS)                                                                      \
  __global__ void __launch_bounds__(256, 1) NAME(PARAMETERS) {                                                  \
    BEGIN                                                                                                       \
    unsigned* words = reinterpret_cast<unsigned*>(bytes);                                                       \
    for (int i = threadIdx.x; i < 48 * 256; i += 256) words[i] = WORDS(i + 12288 * blockIdx.x, scale);          \
    asm volatile("fence.proxy.async;" ::: "memory");                                                            \
    __syncthreads();                                                                                            \
    u64 a = matrix(bytes + 32768 + 8192 * (threadIdx.x / 128)), b = matrix(bytes);                              \
    float c[128];                                                                                               \
    _Pragma("unroll") for (int i = 0; i < 128; ++i) c[i] = 80 * scale * normal(seed * 128 + i);                                                   \
    while (turns.next())                                                                                        \
      for (int turn = 0; turn < inner; ++turn) {                                                                \
        FENCE;                                                                                                  \
        _Pragma("unroll") for (int k = 0; k < 4; ++k)                                                           \
            asm volatile("wgmma.mma_async.sync.aligned.m64n256" KIND " {" N128 "}, %128, %129, 1, 1, 1" TAIL ";" \
                         : C64(0), C64(64)                                                                      \
                         : "l"(a + 2 * k), "l"(b + 2 * k));                                                     \
        _Pragma("unroll") for (int k = 0; k < 4; ++k)                                                           \
            asm volatile("wgmma.mma_async.sync.aligned.m64n256" KIND " {" N128 "}, %128, %129, 1, -1, 1" TAIL ";" \
                         : C64(0), C64(64)                                                                      \
                         : "l"(a + 2 * k), "l"(b + 2 * k));                                                     \
        DONE;                                                                                                   \
      }                                                                                                         \
    turns.end(counts);                                                                                          \
    float sum = 0;                                                                                              \
    _Pragma("unroll") for (int i = 0; i < 128; ++i) sum += c[i];                                                \
    if (sum == -1.5f) data[0].x = sum;                                                                          \
  }

__device__ __forceinline__ unsigned halves(unsigned k, float scale) {
  __half2 h = HALVES(k);
  return WORD(h);
}
__device__ __forceinline__ unsigned single(unsigned k, float scale) { return __float_as_uint(scale * normal(k)); }

WGMMA_256(wgmma, "k16.f32.f16.f16", ", 0, 0", halves)
WGMMA_256(wgmma_tf32, "k8.f32.tf32.tf32", "", single)

// The same with 64 columns of B, so that A is read four times as often.
__global__ void __launch_bounds__(256, 1) wgmma_64(PARAMETERS) {
  BEGIN
  unsigned* words = reinterpret_cast<unsigned*>(bytes);
  for (int i = threadIdx.x; i < 48 * 256; i += 256) words[i] = halves(i + 12288 * blockIdx.x, scale);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  u64 a = matrix(bytes + 32768 + 8192 * (threadIdx.x / 128)), b = matrix(bytes);
  float d[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) d[i] = 80 * scale * normal(seed * 32 + i);
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
      FENCE;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
            "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
              "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
              "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
              "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
            : "l"(a + 2 * k), "l"(b + 2 * k));
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
            "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, -1, 1, 0, 0;"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
              "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
              "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
              "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
            : "l"(a + 2 * k), "l"(b + 2 * k));
      }
      DONE;
    }
  turns.end(counts);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) sum += d[i];
  if (sum == -1.5f) data[0].x = sum;
}

// 16 bytes a lane from shared memory: eight loads a turn, whose banks do not conflict.
__global__ void __launch_bounds__(1024, 1) shared(PARAMETERS) {
  BEGIN
  float4* rows = reinterpret_cast<float4*>(bytes);
  for (int i = threadIdx.x; i < 8192; i += 1024)
    rows[i] = make_float4(scale * normal(4 * i), scale * normal(4 * i + 1), scale * normal(4 * i + 2), scale * normal(4 * i + 3));
  __syncthreads();
  unsigned at = (unsigned)__cvta_generic_to_shared(bytes) + 16 * threadIdx.x;
  unsigned sum = 0;
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
      uint4 x[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x[i].x), "=r"(x[i].y), "=r"(x[i].z), "=r"(x[i].w) : "r"(at + 16384 * i));
#pragma unroll
      for (int i = 0; i < 8; ++i) sum ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
    }
  turns.end(counts);
  if (sum == 12345) data[0].x = sum;
}

// 16 bytes a lane of an array, all blocks through all of it; `cg` passes L1 by.
__global__ void __launch_bounds__(1024, 1) load(PARAMETERS) {
  BEGIN
  size_t stride = (size_t)gridDim.x * blockDim.x, at = seed;
  unsigned sum = 0;
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
      uint4 x[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x[i].x), "=r"(x[i].y), "=r"(x[i].z), "=r"(x[i].w) : "l"(data + at));
        at += stride;
        if (at >= size) at -= size;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) sum ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
    }
  turns.end(counts);
  if (sum == 12345) data[0].x = sum;
}

__global__ void __launch_bounds__(1024, 1) store(PARAMETERS) {
  BEGIN
  size_t stride = (size_t)gridDim.x * blockDim.x, at = seed;
  float4 x = make_float4(scale * normal(4 * seed), scale * normal(4 * seed + 1), scale * normal(4 * seed + 2), scale * normal(4 * seed + 3));
  while (turns.next())
    for (int turn = 0; turn < inner; ++turn) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(data + at), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w) : "memory");
        at += stride;
        if (at >= size) at -= size;
      }
    }
  turns.end(counts);
}
// Two warpgroups multiply 64 x 128 x 64 from shared memory; eight other warps read 16 bytes a lane, `reads` times a turn.
__global__ void __launch_bounds__(512, 1) both(PARAMETERS) {
  BEGIN
  unsigned* words = reinterpret_cast<unsigned*>(bytes);
  for (int i = threadIdx.x; i < 48 * 256; i += 512) words[i] = halves(i + 12288 * blockIdx.x, scale);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  unsigned sum = 0;
  if (threadIdx.x < 256) {
    u64 a = matrix(bytes + 32768 + 8192 * (threadIdx.x / 128)), b = matrix(bytes);
    float c[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) c[i] = 80 * scale * normal(seed * 128 + i);
    while (turns.next())
      for (int turn = 0; turn < inner; ++turn) {
        FENCE;
#pragma unroll
        for (int k = 0; k < 4; ++k)
          asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" N64 "}, %64, %65, 1, 1, 1, 0, 0;" : C64(0) : "l"(a + 2 * k), "l"(b + 2 * k));
#pragma unroll
        for (int k = 0; k < 4; ++k)
          asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" N64 "}, %64, %65, 1, -1, 1, 0, 0;" : C64(0) : "l"(a + 2 * k), "l"(b + 2 * k));
        DONE;
      }
    float all = 0;
#pragma unroll
    for (int i = 0; i < 64; ++i) all += c[i];
    sum = all == -1.5f ? 12345 : 0;
  } else {
    size_t stride = (size_t)gridDim.x * 256, at = blockIdx.x * 256 + threadIdx.x - 256;
    while (turns.next())
      for (int turn = 0; turn < inner * reads / 4; ++turn) {
        uint4 x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x[i].x), "=r"(x[i].y), "=r"(x[i].z), "=r"(x[i].w) : "l"(data + at));
          at += stride;
          if (at >= size) at -= size;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) sum ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
      }
  }
  turns.end(counts);
  if (sum == 12345) data[0].x = sum;
}
}
