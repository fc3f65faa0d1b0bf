# What every target of the project is compiled with.
function(stepwell_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wno-psabi
    # The bits of a result must not depend on which multiply-add pairs a compiler sees (docs/numerics.md).
    -ffp-contract=off
    # GCC 12 sees overlaps in std::string's operator+ that are not there.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(STEPWELL_WARNINGS_AS_ERRORS)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
endfunction()

# A library of the project: stepwell_target, its public headers, and an alias stepwell::<short>.
function(stepwell_library name short)
  add_library(${name} STATIC)
  add_library(stepwell::${short} ALIAS ${name})
  stepwell_target(${name})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
endfunction()

# Highway for the *_simd.cc of a target. The scalar target of every kernel is always built beside the vector ones (X7): it
# is Highway's baseline here.
set(STEPWELL_LEFT_OUT "HWY_SSSE3|HWY_AVX3_DL" CACHE STRING "Highway's targets that are not compiled")
mark_as_advanced(STEPWELL_LEFT_OUT)
function(stepwell_use_highway name)
  find_package(hwy REQUIRED)
  target_link_libraries(${name} PRIVATE hwy::hwy)
  target_compile_definitions(${name} PRIVATE
    HWY_BROKEN_EMU128=1
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:HWY_BASELINE_TARGETS=HWY_SCALAR>
    "HWY_DISABLED_TARGETS=(${STEPWELL_LEFT_OUT})")
endfunction()
