// A step of the heat equation on a grid of three dimensions; a thread goes up a column.
struct Sizes { int x, y, z; };

extern "C" __global__ void stencil(Sizes n, float c, const float* __restrict__ u, float* __restrict__ v) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n.x - 1 || y >= n.y - 1) return;
    int layer = n.x * n.y, at = y * n.x + x;
    float below = u[at], here = u[at + layer];
    for (int z = 1; z < n.z - 1; z++) {
        at += layer;
        float above = u[at + layer];
        v[at] = here + c * (below + above + u[at - 1] + u[at + 1] + u[at - n.x] + u[at + n.x] - 6 * here);
        below = here, here = above;
    }
}
