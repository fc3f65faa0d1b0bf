# The options (docs/build.md) as configured, once at the end.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher " through ${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()
message(STATUS "Stepwell ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}${launcher}")
foreach(option
    STEPWELL_BUILD_TESTS STEPWELL_BUILD_CLI STEPWELL_BUILD_BENCH STEPWELL_BUILD_EXAMPLES STEPWELL_BUILD_FUZZ
    STEPWELL_WITH_TBB STEPWELL_WARNINGS_AS_ERRORS)
  message(STATUS "  ${option} ${${option}}")
endforeach()
