# Installs headers, one self-contained archive and the package files for find_package(isofold).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(ISOFOLD_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/isofold")

set(ISOFOLD_INSTALLED isofold)
if(ISOFOLD_CURVES)
  list(APPEND ISOFOLD_INSTALLED isofold_curves)
endif()
install(TARGETS ${ISOFOLD_INSTALLED} EXPORT isofoldTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT isofold_development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/isofold" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT isofold_development FILES_MATCHING PATTERN "*.hpp")
install(EXPORT isofoldTargets NAMESPACE isofold:: DESTINATION "${ISOFOLD_CMAKE_DIR}" COMPONENT isofold_development)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/isofoldConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/isofoldConfig.cmake" INSTALL_DESTINATION "${ISOFOLD_CMAKE_DIR}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/isofoldConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/isofoldConfig.cmake" "${PROJECT_BINARY_DIR}/isofoldConfigVersion.cmake"
        DESTINATION "${ISOFOLD_CMAKE_DIR}" COMPONENT isofold_development)
