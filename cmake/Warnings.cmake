# Warnings for isofold's own files; nothing of this reaches a consumer.
add_library(isofold_warnings INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  set(warnings
      -Wall
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
    list(APPEND warnings -Wduplicated-cond -Wduplicated-branches -Wlogical-op)
    # At -O3 GCC 12 unrolls loops over `size` limbs past the array's end and then reports what it made up. AddressSanitizer and
    # UBSan's bounds check see what really happens. -Wrestrict misfires on "text" + std::string (GCC bug 105329).
    list(APPEND warnings -Wno-array-bounds -Wno-stringop-overflow -Wno-restrict)
  endif()
  if(ISOFOLD_WARNINGS_AS_ERRORS)
    list(APPEND warnings -Werror)
  endif()
  target_compile_options(isofold_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
endif()
