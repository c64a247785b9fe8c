# Kernels for NVIDIA's GPUs (src/backend/cuda/kernels/*.cu): compiled by nvcc, carried as bytes of the library
# candor_cuda_images, loaded by the driver where there is one. Nothing of CUDA is linked. Without CANDOR_CUDA the library
# holds no kernels, and the program does not link the module backend/cuda.
option(CANDOR_CUDA "Compile kernels for NVIDIA's GPUs into the program (nvcc 13: sh scripts/setup_cuda.sh)" OFF)
set(CANDOR_CUDA_ARCHS "80;86;89;90a;100;120" CACHE STRING "Compute capabilities that have machine code; others take PTX")
# docs/numerics.md: one IEEE operation for each in the source, FTZ and DAZ.
set(CANDOR_CUDA_FLAGS -std=c++20 -fmad=false -ftz=true -prec-div=true -prec-sqrt=true --expt-relaxed-constexpr
                      -Werror=all-warnings)

# Sets CANDOR_NVCC and ${out}, its version as the driver counts: 13050.
function(candor_find_nvcc out)
  file(GLOB folders ${CMAKE_SOURCE_DIR}/build/cuda/lib/python3*/site-packages/nvidia/cu*/bin)
  find_program(CANDOR_NVCC nvcc HINTS ${folders} PATHS /usr/local/cuda/bin DOC "NVIDIA's compiler of kernels")
  if(NOT CANDOR_NVCC)
    message(FATAL_ERROR "CANDOR_CUDA: no nvcc is here. sh scripts/setup_cuda.sh installs it; -DCANDOR_NVCC=PATH names another.")
  endif()
  execute_process(COMMAND ${CANDOR_NVCC} --version OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT said MATCHES "release ([0-9]+)\\.([0-9]+)")
    message(FATAL_ERROR "CANDOR_CUDA: ${CANDOR_NVCC} does not say its version. sh scripts/setup_cuda.sh installs another.")
  endif()
  if(CMAKE_MATCH_1 LESS 13)
    message(FATAL_ERROR "CANDOR_CUDA: ${CANDOR_NVCC} is ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}, and 13.0 or newer is needed: "
                        "sh scripts/setup_cuda.sh, or -DCANDOR_NVCC=PATH")
  endif()
  math(EXPR version "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
  set(${out} ${version} PARENT_SCOPE)
endfunction()

# Compiles a .cu file into ${image}, for all cards at once.
function(candor_compile_kernels source image)
  set(targets -gencode arch=compute_80,code=compute_80)
  foreach(arch IN LISTS CANDOR_CUDA_ARCHS)
    list(APPEND targets -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  set(host "")
  if(NOT CMAKE_CROSSCOMPILING)
    set(host -ccbin ${CMAKE_CXX_COMPILER})
  endif()
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
  add_custom_command(
    OUTPUT ${image}
    COMMAND ${CANDOR_NVCC} --fatbin ${CANDOR_CUDA_FLAGS} ${targets} ${host} --compress-mode=size -frandom-seed ${name}
            -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include -MD -MF ${image}.d -o ${image} ${source}
    DEPENDS ${source} ${CANDOR_NVCC}
    DEPFILE ${image}.d
    COMMENT "nvcc ${name}"
    VERBATIM)
endfunction()

# The list of images, and their bytes, as C.
function(candor_write_images sources version out)
  set(bytes "")
  set(declarations "")
  set(rows "")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    set(symbol candor_cuda_${name})
    string(APPEND bytes "EMBED(${symbol}, \"${CMAKE_BINARY_DIR}/cuda_images/${name}.fatbin\");\n")
    string(APPEND declarations "extern const unsigned char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "    {\"${name}\", ${symbol}, ${symbol}_end},\n")
  endforeach()
  configure_file(${CMAKE_SOURCE_DIR}/cmake/cuda_images.c.in ${out} @ONLY)
endfunction()

function(candor_add_cuda_images)
  set(version 0)
  set(sources "")
  set(images "")
  if(CANDOR_CUDA)
    candor_find_nvcc(version)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/kernels/*.cu)
    foreach(source IN LISTS sources)
      get_filename_component(name ${source} NAME_WE)
      list(APPEND images ${CMAKE_BINARY_DIR}/cuda_images/${name}.fatbin)
      candor_compile_kernels(${source} ${CMAKE_BINARY_DIR}/cuda_images/${name}.fatbin)
    endforeach()
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda_images)
  endif()
  set(list ${CMAKE_BINARY_DIR}/cuda_images.c)
  candor_write_images("${sources}" ${version} ${list})
  add_library(candor_cuda_images STATIC ${list})
  target_include_directories(candor_cuda_images PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
  set_source_files_properties(${list} PROPERTIES OBJECT_DEPENDS "${images}")
endfunction()
candor_add_cuda_images()
