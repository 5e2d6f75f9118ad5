# cmake -DKIND=find_package|add_subdirectory -DSOURCE=... -DBUILD=... -DWORK=... -DGENERATOR=... -DCOMPILER=...
#       -DCONFIG=... -DVERSION=... -P run_consumer.cmake
#
# Builds a user's project against isofold in a fresh folder and runs it.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed with ${result}: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
set(arguments -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_BUILD_TYPE=${CONFIG}")

if(KIND STREQUAL "find_package")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/staging" --component isofold_development
      --config "${CONFIG}")
  # The package must work from where it is put, and must not lean on the trees that it came from.
  file(RENAME "${WORK}/staging" "${WORK}/prefix")
  file(GLOB_RECURSE package_files "${WORK}/prefix/*.cmake")
  if(NOT package_files)
    message(FATAL_ERROR "no package files were installed")
  endif()
  foreach(package_file IN LISTS package_files)
    file(READ "${package_file}" text)
    foreach(path "${SOURCE}" "${BUILD}" "${WORK}/staging")
      string(FIND "${text}" "${path}/" position)
      if(NOT position EQUAL -1)
        message(FATAL_ERROR "${package_file} refers to ${path}")
      endif()
    endforeach()
  endforeach()
  file(GLOB_RECURSE archives "${WORK}/prefix/*.a")
  # One self-contained archive, and beside it the optional reader of curve files.
  list(FILTER archives EXCLUDE REGEX "/libisofold_curves\\.a$")
  list(LENGTH archives count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "expected one archive, found: ${archives}")
  endif()
  list(APPEND arguments "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DISOFOLD_VERSION=${VERSION}")
elseif(KIND STREQUAL "add_subdirectory")
  list(APPEND arguments "-DISOFOLD_SOURCE_DIR=${SOURCE}" -DISOFOLD_CUDA=OFF)
else()
  message(FATAL_ERROR "unknown KIND ${KIND}")
endif()

run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/install/${KIND}" -B "${WORK}/build" ${arguments})
run("${CMAKE_COMMAND}" --build "${WORK}/build" --config "${CONFIG}" --parallel 2)
find_program(consumer consumer PATHS "${WORK}/build" PATH_SUFFIXES "${CONFIG}" NO_DEFAULT_PATH REQUIRED)
run("${consumer}")

if(EXISTS "${WORK}/build/curve_consumer")
  run("${WORK}/build/curve_consumer")
endif()
