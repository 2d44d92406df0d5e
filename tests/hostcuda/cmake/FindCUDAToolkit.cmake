# FindCUDAToolkit.cmake - what find_package(CUDAToolkit) finds under hostcuda.cmake: targets of the libraries that hostcuda-cc has in its
# own. Those of others (CUDA::cufft, CUDA::cusparse ...) are not there, and CMake names them.
set(CUDAToolkit_FOUND TRUE)
set(CUDAToolkit_VERSION "${CMAKE_CUDA_COMPILER_VERSION}")
string(REPLACE "." ";" hostcuda_version "${CUDAToolkit_VERSION}")
list(GET hostcuda_version 0 CUDAToolkit_VERSION_MAJOR)
list(GET hostcuda_version 1 CUDAToolkit_VERSION_MINOR)
get_filename_component(CUDAToolkit_BIN_DIR "${HOSTCUDA_CC}" DIRECTORY)
set(CUDAToolkit_NVCC_EXECUTABLE "${HOSTCUDA_CC}")
set(CUDAToolkit_INCLUDE_DIRS "${CUDAToolkit_BIN_DIR}") # hostcuda-cc has NVIDIA's headers in its path
set(CUDAToolkit_LIBRARY_DIR "${CUDAToolkit_BIN_DIR}")
foreach(library cudart cudart_static cudadevrt cuda_driver toolkit cublas cublas_static cublasLt cublasLt_static curand curand_static)
    if(NOT TARGET CUDA::${library})
        add_library(CUDA::${library} INTERFACE IMPORTED)
    endif()
endforeach()
