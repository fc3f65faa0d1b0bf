// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/rivals/rivals.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <dlfcn.h>

#include "stepwell/simd/isa.h"

namespace stepwell::bench {

namespace {

// cblas_sgemm as every CBLAS with 32-bit integers declares it.
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
using CblasSgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
// dnnl_sgemm of oneDNN: row-major, 'N' or 'T'.
using DnnlSgemm = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
                          float* c, std::int64_t ldc);

// A symbol of a library that shares no symbols with the others: several of them define the same names.
template <class Function>
Function find(const char* library, const char* symbol) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* address = handle ? dlsym(handle, symbol) : nullptr;
  if (!address) std::fprintf(stderr, "%s in %s: not found\n", symbol, library);
  return reinterpret_cast<Function>(address);
}

std::int64_t lda(const Gemm& g) { return g.transpose_a ? g.M : g.K; }
std::int64_t ldb(const Gemm& g) { return g.transpose_b ? g.K : g.N; }

void add_cblas(std::vector<Contender>& rivals, const char* name, const char* library) {
  const auto sgemm = find<CblasSgemm>(library, "cblas_sgemm");
  if (!sgemm) return;
  rivals.push_back({name, [sgemm](const Gemm& g) {
                      sgemm(kRowMajor, g.transpose_a ? kTranspose : kNoTranspose,
                            g.transpose_b ? kTranspose : kNoTranspose, static_cast<int>(g.M), static_cast<int>(g.N),
                            static_cast<int>(g.K), 1.0f, g.a, static_cast<int>(lda(g)), g.b, static_cast<int>(ldb(g)),
                            0.0f, g.c, static_cast<int>(g.N));
                    }});
}

}  // namespace

std::vector<Contender> find_rivals(int threads) {
  // Read by the libraries when they are loaded. Debian 12's OpenBLAS and BLIS take processors they do not know for old
  // ones (0.2 and 0.5 of their speed): name the newest kernels they have where the processor can run them.
  for (const char* name : {"OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    unsetenv(name);
  }
  // With STEPWELL_ISA=avx2 the others are held to AVX2 too. Debian 12's BLIS knows kernels by number.
  if (simd::current_isa() == simd::Isa::Avx3) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    setenv("BLIS_ARCH_TYPE", "0", 1);
  } else if (simd::current_isa() == simd::Isa::Avx2 && simd::supported_isas().front() == simd::Isa::Avx3) {
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    setenv("BLIS_ARCH_TYPE", "3", 1);
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  }
  const std::string count = std::to_string(threads);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS"}) {
    setenv(name, count.c_str(), 1);
  }
  std::vector<Contender> rivals;
  add_cblas(rivals, "OpenBLAS", "libopenblas.so.0");
  add_cblas(rivals, "BLIS", "libblis.so.4");
  if (const auto sgemm = find<DnnlSgemm>("libdnnl.so.2", "dnnl_sgemm")) {
    rivals.push_back({"oneDNN", [sgemm](const Gemm& g) {
                        sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.M, g.N, g.K, 1.0f, g.a, lda(g),
                              g.b, ldb(g), 0.0f, g.c, g.N);
                      }});
  }
  return rivals;
}

}  // namespace stepwell::bench
