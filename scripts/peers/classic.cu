// SPDX-License-Identifier: Apache-2.0
//
// GELU and softmax in plain CUDA C++, as one would write them first: what `tenon bench classic` compiles with NVRTC and
// measures beside Tenon's kernels. Bring your own with --cuda FILE: the same two functions and parameters, launched
// with a block of 256 threads a row. Elements are bf16 (TENON_BF16 is defined) or f32.
#ifdef TENON_BF16
typedef unsigned short Element;
__device__ float load(const Element *p) { return __uint_as_float((unsigned)*p << 16); }
__device__ void store(Element *p, float value) { // to nearest, ties to even
  unsigned bits = __float_as_uint(value);
  *p = (Element)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#else
typedef float Element;
__device__ float load(const Element *p) { return *p; }
__device__ void store(Element *p, float value) { *p = value; }
#endif

extern "C" __global__ void gelu_tanh(const Element *x, Element *y, long long rows, long long cols) {
  const Element *from = x + blockIdx.x * cols;
  Element *to = y + blockIdx.x * cols;
  for (long long j = threadIdx.x; j < cols; j += blockDim.x) {
    float t = load(from + j);
    store(to + j, 0.5f * t * (1 + tanhf(0.7978845608f * (t + 0.044715f * t * t * t))));
  }
}

/// The sum or the maximum of one value a thread, for every thread of the block.
template <class Combine> __device__ float reduce(float value, Combine combine) {
  __shared__ float shared[256];
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  return shared[0];
}

extern "C" __global__ void softmax(const Element *x, Element *y, long long rows, long long cols) {
  const Element *from = x + blockIdx.x * cols;
  Element *to = y + blockIdx.x * cols;
  float largest = __int_as_float(0xff800000); // minus infinity
  for (long long j = threadIdx.x; j < cols; j += blockDim.x)
    largest = fmaxf(largest, load(from + j));
  largest = reduce(largest, [](float a, float b) { return fmaxf(a, b); });
  float total = 0;
  for (long long j = threadIdx.x; j < cols; j += blockDim.x)
    total += expf(load(from + j) - largest);
  total = reduce(total, [](float a, float b) { return a + b; });
  for (long long j = threadIdx.x; j < cols; j += blockDim.x)
    store(to + j, expf(load(from + j) - largest) / total);
}
