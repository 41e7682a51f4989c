# example_libtorch: LibTorch for the programs that link it, and for nothing else; libtorch_left_out says why it is not there.
#
# PyTorch's own package file is not asked: it looks for a CUDA toolkit and cuDNN by itself, stops the whole configuration
# where it dislikes one, and changes flags of the folder that asks.

set(STEPTIMER_TORCH "" CACHE PATH
    "Folder of the Python package torch or of an unpacked LibTorch (with include/ and lib/); empty for the system's")

set(libtorch_left_out "")
set(places PATHS "${STEPTIMER_TORCH}" NO_DEFAULT_PATH)
if(NOT STEPTIMER_TORCH)
  set(places "")
endif()
foreach(library IN ITEMS c10 torch_cpu torch c10_cuda torch_cuda)
  find_library(libtorch_${library} ${library} PATH_SUFFIXES lib NO_CACHE ${places})
endforeach()
find_path(libtorch_include torch/csrc/api/include/torch/torch.h PATH_SUFFIXES include NO_CACHE ${places})

if(NOT libtorch_include OR NOT libtorch_c10 OR NOT libtorch_torch_cpu OR NOT libtorch_torch)
  if(STEPTIMER_TORCH)
    message(FATAL_ERROR "STEPTIMER_TORCH is ${STEPTIMER_TORCH}, where LibTorch is not; name the folder that "
                        "python3 -c 'import torch; print(torch.__path__[0])' prints, or that of an unpacked LibTorch")
  endif()
  set(libtorch_left_out "LibTorch was not found (install libtorch-dev, or set STEPTIMER_TORCH)")
  return()
endif()

add_library(example_libtorch INTERFACE IMPORTED)
target_include_directories(example_libtorch SYSTEM INTERFACE "${libtorch_include}"
                           "${libtorch_include}/torch/csrc/api/include")
set(libraries "${libtorch_torch}" "${libtorch_torch_cpu}" "${libtorch_c10}")
if(libtorch_c10_cuda AND libtorch_torch_cuda AND TARGET steptimer::cuda)
  list(APPEND libraries "${libtorch_torch_cuda}" "${libtorch_c10_cuda}" steptimer::cuda)
  target_compile_definitions(example_libtorch INTERFACE STEPTIMER_EXAMPLES_LIBTORCH_CUDA)
endif()
target_link_libraries(example_libtorch INTERFACE ${libraries})
# libtorch_cuda registers the GPU as it is loaded, and no symbol asks for it; what it needs itself it knows where to find.
target_link_options(example_libtorch INTERFACE LINKER:--no-as-needed LINKER:--allow-shlib-undefined)

# Older Python packages are built for the old layout of std::string, and say so in their package file only.
set(package_file "${libtorch_include}/../share/cmake/Torch/TorchConfig.cmake")
if(EXISTS "${package_file}")
  file(STRINGS "${package_file}" old_strings REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(old_strings)
    target_compile_definitions(example_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
  endif()
endif()
