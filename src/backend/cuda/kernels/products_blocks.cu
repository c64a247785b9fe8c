// Products of blocks of 32.

#include "backend/cuda/kernels/few_blocks.h"

namespace candor::backend::cuda {

CANDOR_BOUNDED_KERNEL(product_q4_0, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockQ4_0>(args);
}
CANDOR_BOUNDED_KERNEL(product_q4_1, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockQ4_1>(args);
}
CANDOR_BOUNDED_KERNEL(product_q5_0, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockQ5_0>(args);
}
CANDOR_BOUNDED_KERNEL(product_q5_1, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockQ5_1>(args);
}
CANDOR_BOUNDED_KERNEL(product_q8_0, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockQ8_0>(args);
}
CANDOR_BOUNDED_KERNEL(product_q1_0, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockQ1_0>(args);
}
CANDOR_BOUNDED_KERNEL(product_q2_0, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockQ2_0>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq4_nl, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockIQ4_NL>(args);
}
CANDOR_BOUNDED_KERNEL(product_mxfp4, ProductArgs, kFewThreads, 4) {
  multiply_few_blocks<quant::BlockMXFP4>(args);
}

}  // namespace candor::backend::cuda
