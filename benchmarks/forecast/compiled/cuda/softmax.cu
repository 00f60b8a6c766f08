// The softmax of each row, a block a row, which it reads three times.
__device__ float of_block(float value, bool largest) {
    __shared__ float parts[8];
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffff, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < 8; i++) value = largest ? fmaxf(value, parts[i]) : value + parts[i];
    return value;
}

extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
    const float* row = x + (size_t)blockIdx.x * columns;
    float* out = y + (size_t)blockIdx.x * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
    most = of_block(most, true);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - most);
    sum = of_block(sum, false);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(row[i] - most) / sum;
}
