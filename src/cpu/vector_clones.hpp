// Compiles a function for several x86-64 levels and picks one at run time. Contraction is off, so that every copy
// computes the same bits. Sanitizers run before such a choice can be made, and other compilers go without.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && !defined(ISOFOLD_NO_VECTOR_CLONES)
#define ISOFOLD_VECTOR_CLONES __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define ISOFOLD_VECTOR_CLONES
#endif
