# The one place for flags that touch floating-point results. Every target that compiles isofold's sources or its
# internal headers links isofold_floating_point.
#
# -ffp-contract=off   A contracted a*b + c rounds once where the error bounds count two roundings, and only on some
#                     machines. A fused step is always spelled std::fma.
# -fno-fast-math      Two-sum and two-product are algebraic zeros to a compiler that may reassociate; the filters count
#                     on NaN and infinity failing every comparison; the sign of zero matters to the rounding. Last, so
#                     that it wins over a fast-math in a parent project's flags. (-Ofast in CMAKE_CXX_FLAGS would come
#                     back in through crtfastmath.o at link time; the entry points set the mode themselves.)
#
# No -m flags: the baseline is the platform's (SSE2 on x86-64). Code for wider units is compiled by function attribute
# and chosen at run time, so that one binary gives the same bits everywhere.
add_library(isofold_floating_point INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(isofold_floating_point INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-fast-math -ffp-contract=off>)
else()
  message(WARNING "isofold's exactness is tested with GCC and Clang only, not with ${CMAKE_CXX_COMPILER_ID}")
endif()
