// C = A·B, tiles of 128×128 in shared memory, 8×8 sums a thread, loads of four numbers.
constexpr int TILE = 128, DEPTH = 16, SUMS = 8;

extern "C" __global__ void __launch_bounds__(256)
matmul_tiled(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    __shared__ float tile_a[DEPTH][TILE + 4], tile_b[DEPTH][TILE];
    int thread = threadIdx.x, x = thread % 16, y = thread / 16;
    float sums[SUMS][SUMS] = {};
    for (int k = 0; k < n; k += DEPTH) {
        for (int i = thread; i < TILE * DEPTH / 4; i += 256) {
            int row = i / 4, column = i % 4 * 4;
            float4 four = *(const float4*)&a[(size_t)(blockIdx.y * TILE + row) * n + k + column];
            tile_a[column][row] = four.x, tile_a[column + 1][row] = four.y;
            tile_a[column + 2][row] = four.z, tile_a[column + 3][row] = four.w;
        }
        for (int i = thread; i < TILE * DEPTH / 4; i += 256) {
            int row = i / 32, column = i % 32 * 4;
            *(float4*)&tile_b[row][column] =
                *(const float4*)&b[(size_t)(k + row) * n + blockIdx.x * TILE + column];
        }
        __syncthreads();
        for (int p = 0; p < DEPTH; p++) {
            float left[SUMS], right[SUMS];
            for (int i = 0; i < SUMS; i++) left[i] = tile_a[p][y * SUMS + i];
            for (int j = 0; j < SUMS; j++) right[j] = tile_b[p][j / 4 * 64 + x * 4 + j % 4];
            for (int i = 0; i < SUMS; i++)
                for (int j = 0; j < SUMS; j++) sums[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < SUMS; i++)
        for (int j = 0; j < SUMS; j++)
            c[(size_t)(blockIdx.y * TILE + y * SUMS + i) * n + blockIdx.x * TILE + j / 4 * 64 + x * 4 +
              j % 4] = sums[i][j];
}
