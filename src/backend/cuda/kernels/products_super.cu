// Products of super-blocks: K-quants, ternary weights, IQ4_XS, rebased Q4_K.

#include "backend/cuda/kernels/few_units.h"

namespace candor::backend::cuda {

CANDOR_BOUNDED_KERNEL(product_q2_k, ProductArgs, kFewThreads, 2) {
  multiply_few_units<SuperUnit<quant::BlockQ2_K>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q3_k, ProductArgs, kFewThreads, 2) {
  multiply_few_units<SuperUnit<quant::BlockQ3_K>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q4_k, ProductArgs, kFewThreads, 3) {
  multiply_few_units<SuperUnit<quant::BlockQ4_K>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q4_k_fast, ProductArgs, kFewThreads, 2) {
  multiply_few_units<SuperUnit<quant::BlockQ4_KFast>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q5_k, ProductArgs, kFewThreads, 2) {
  multiply_few_units<SuperUnit<quant::BlockQ5_K>>(args);
}
CANDOR_BOUNDED_KERNEL(product_q6_k, ProductArgs, kFewThreads, 2) {
  multiply_few_units<SuperUnit<quant::BlockQ6_K>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq4_xs, ProductArgs, kFewThreads, 2) {
  multiply_few_units<SuperUnit<quant::BlockIQ4_XS>>(args);
}
CANDOR_BOUNDED_KERNEL(product_tq1_0, ProductArgs, kFewThreads, 3) {
  multiply_few_units<SuperUnit<quant::BlockTQ1_0>>(args);
}
CANDOR_BOUNDED_KERNEL(product_tq2_0, ProductArgs, kFewThreads, 3) {
  multiply_few_units<SuperUnit<quant::BlockTQ2_0>>(args);
}

}  // namespace candor::backend::cuda
