# The optional targets of steptimer, the same for its build tree and for an installed package.
#
#   steptimer_add_cuda(<AUTO|ON|OFF> [GLOBAL])     steptimer::cuda   = steptimer::steptimer + CUDA::cudart
#   steptimer_add_format(<AUTO|ON|OFF> [GLOBAL])   steptimer::format = steptimer::steptimer + fmt::fmt
#   steptimer_add_mpi(<AUTO|ON|OFF> [GLOBAL])      steptimer::mpi    = steptimer::steptimer + MPI::MPI_CXX
#
# Each leaves in steptimer_<name>_reason what became of it and why. AUTO makes the target where its dependency is
# found, ON stops without it, OFF does not look. A target that is there already is kept.
#
# The targets are IMPORTED, so that a project that exports a target linking one of them can do so: neither the
# target nor a fetched fmt has to be in that project's export set. They are GLOBAL in the build tree, where the
# project that added steptimer as a folder has to see them. CUDA is used from plain C++: its language is not enabled.

macro(steptimer_add_cuda mode)
  _steptimer_optional_target(cuda "${mode}" CUDA::cudart CUDAToolkit "the CUDA toolkit" "${ARGN}")
endmacro()

macro(steptimer_add_format mode)
  _steptimer_optional_target(format "${mode}" fmt::fmt fmt "fmt" "${ARGN}")
endmacro()

macro(steptimer_add_mpi mode)
  _steptimer_optional_target(mpi "${mode}" MPI::MPI_CXX MPI "MPI" "${ARGN}" COMPONENTS CXX)
endmacro()

# Macros, so that what find_package() sets is set for the caller, as by a find_package() of its own.
macro(_steptimer_optional_target name mode dependency package title scope)
  if(NOT "${mode}" MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "steptimer: steptimer::${name} is AUTO, ON or OFF, not '${mode}'")
  endif()
  if(TARGET steptimer::${name})
    set(steptimer_${name}_reason "is there already")
  elseif("${mode}" STREQUAL "OFF")
    set(steptimer_${name}_reason "left out: it is turned off")
  else()
    if(NOT TARGET ${dependency})
      find_package(${package} QUIET ${scope} ${ARGN})
    endif()
    if(TARGET ${dependency})
      add_library(steptimer::${name} INTERFACE IMPORTED ${scope})
      set_target_properties(steptimer::${name} PROPERTIES
        INTERFACE_LINK_LIBRARIES "steptimer::steptimer;${dependency}")
      if("${${package}_VERSION}" STREQUAL "")
        set(steptimer_${name}_reason "with ${dependency}")
      else()
        set(steptimer_${name}_reason "with ${dependency} ${${package}_VERSION}")
      endif()
    else()
      set(steptimer_${name}_reason "left out: ${title} was not found")
      if("${mode}" STREQUAL "ON")
        message(FATAL_ERROR "steptimer: steptimer::${name} was asked for and ${title} was not found")
      endif()
    endif()
  endif()
endmacro()
