// Running sums of each 1,024 numbers: four a thread, a warp by shuffles, a block by shared memory.
extern "C" __global__ void scan(const int4* __restrict__ x, int4* __restrict__ y) {
    __shared__ int ends[8];
    int at = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int4 four = x[at];
    four.y += four.x, four.z += four.y, four.w += four.z;
    int sum = four.w;
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(0xffffffff, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) ends[warp] = sum;
    __syncthreads();
    int before = sum - four.w;
    for (int i = 0; i < warp; i++) before += ends[i];
    four.x += before, four.y += before, four.z += before, four.w += before;
    y[at] = four;
}
