// Products of many rows with blocks of 32.

#include "backend/cuda/kernels/many_blocks.h"

namespace candor::backend::cuda {

CANDOR_BOUNDED_KERNEL(product_q4_0_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockQ4_0>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q4_1_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockQ4_1>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q5_0_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockQ5_0>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q5_1_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockQ5_1>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q8_0_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockQ8_0>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q1_0_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockQ1_0>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q2_0_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockQ2_0>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq4_nl_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockIQ4_NL>>(args);
}
CANDOR_BOUNDED_KERNEL(product_mxfp4_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyBlockSums<quant::BlockMXFP4>>(args);
}

}  // namespace candor::backend::cuda
