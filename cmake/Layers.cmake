# isofold_add_layer(NAME [DEPENDS layer...] [SOURCES file...])
#
# One target a layer, named isofold_NAME, from the .cpp files beside the calling CMakeLists.txt unless SOURCES says
# otherwise: an object library, or an interface when the layer is headers only. New files are found without touching CMake. When tests are built, the same
# sources are compiled once more as isofold_NAME_counted, with the counters on, for the white-box tests.

set(ISOFOLD_FLAVOURS "plain")
if(ISOFOLD_BUILD_TESTS)
  list(APPEND ISOFOLD_FLAVOURS "counted")
endif()

# The suffix of a flavour's targets: none for plain.
function(isofold_flavour_suffix flavour result)
  if(flavour STREQUAL "counted")
    set(${result} "_counted" PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# What every target that compiles isofold's own sources needs.
function(isofold_internal_settings target scope flavour)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${target} ${scope} isofold_floating_point Threads::Threads)
  if(flavour STREQUAL "counted" OR ISOFOLD_COUNTERS)
    target_compile_definitions(${target} ${scope} ISOFOLD_COUNTERS=1)
  endif()
  if(NOT scope STREQUAL "INTERFACE")
    target_link_libraries(${target} PRIVATE isofold_warnings)
    set_target_properties(
      ${target}
      PROPERTIES CXX_EXTENSIONS OFF
                 POSITION_INDEPENDENT_CODE ON
                 CXX_VISIBILITY_PRESET hidden
                 VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

function(isofold_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "DEPENDS;SOURCES")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(layer_SOURCES)
    set(sources ${layer_SOURCES})
  endif()
  foreach(flavour IN LISTS ISOFOLD_FLAVOURS)
    isofold_flavour_suffix(${flavour} suffix)
    set(target isofold_${name}${suffix})
    if(sources)
      set(scope PUBLIC)
      add_library(${target} OBJECT ${sources})
    else()
      set(scope INTERFACE)
      add_library(${target} INTERFACE)
    endif()
    isofold_internal_settings(${target} ${scope} ${flavour})
    foreach(lower IN LISTS layer_DEPENDS)
      target_link_libraries(${target} ${scope} isofold_${lower}${suffix})
    endforeach()
  endforeach()
endfunction()

# isofold_add_library(flavour layer...): the public library, one archive that holds the objects of all layers.
function(isofold_add_library flavour)
  isofold_flavour_suffix(${flavour} suffix)
  set(objects "")
  foreach(layer IN LISTS ARGN)
    get_target_property(type isofold_${layer}${suffix} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:isofold_${layer}${suffix}>)
    endif()
  endforeach()
  set(target isofold${suffix})
  add_library(${target} STATIC ${objects})
  if(ISOFOLD_CUDA)
    target_link_libraries(${target} PUBLIC CUDA::cudart_static)
  endif()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(
    ${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                     "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} PUBLIC Threads::Threads)
  add_library(isofold::${target} ALIAS ${target})
endfunction()
