# Warnings for isofold's own files; nothing of this reaches a consumer.
add_library(isofold_warnings INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(
    isofold_warnings
    INTERFACE -Wall
              -Wextra
              -Wshadow
              -Wcast-align
              -Wcast-qual
              -Wnon-virtual-dtor
              -Woverloaded-virtual
              -Wextra-semi
              -Wimplicit-fallthrough
              -Wmissing-declarations)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(isofold_warnings INTERFACE -Wduplicated-cond -Wduplicated-branches -Wlogical-op)
  endif()
  if(ISOFOLD_WARNINGS_AS_ERRORS)
    target_compile_options(isofold_warnings INTERFACE -Werror)
  endif()
endif()
