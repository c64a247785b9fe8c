#pragma once
/* The compiled kernels, one image for each .cu file of this folder: what cuModuleLoadData takes, with machine code for
   several cards and PTX for later ones. Without -DCANDOR_CUDA=ON there are none (cmake/cuda.cmake writes the list). */

#ifdef __cplusplus
extern "C" {
#endif

struct candor_cuda_image {
  const char* name;
  const unsigned char* begin; /* a multiple of 16 */
  const unsigned char* end;
};

/* Ends with a row whose name is null. */
extern const struct candor_cuda_image candor_cuda_images[];
/* Of the compiler, as the driver counts versions: 13050 is 13.5. 0 where there are no kernels. */
extern const int candor_cuda_version;

#ifdef __cplusplus
}
#endif
