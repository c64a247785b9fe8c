// Products of many rows with super-blocks.

#include "backend/cuda/kernels/many_units.h"

namespace candor::backend::cuda {

CANDOR_BOUNDED_KERNEL(product_q2_k_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockQ2_K>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q3_k_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockQ3_K>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q4_k_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockQ4_K>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q4_k_fast_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockQ4_KFast>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q5_k_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockQ5_K>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q6_k_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockQ6_K>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq4_xs_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockIQ4_XS>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_tq1_0_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockTQ1_0>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_tq2_0_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<SuperUnit<quant::BlockTQ2_0>>>(args);
}

}  // namespace candor::backend::cuda
