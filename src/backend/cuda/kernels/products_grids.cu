// Products of formats whose codes name vectors of a grid: IQ1, IQ2 and IQ3.

#include "backend/cuda/kernels/few_units.h"
#include "backend/cuda/kernels/grid_units.h"

namespace candor::backend::cuda {

CANDOR_BOUNDED_KERNEL(product_iq1_s, ProductArgs, kFewThreads, 2) {
  multiply_few_units<GridUnit<quant::BlockIQ1_S>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq1_m, ProductArgs, kFewThreads, 2) {
  multiply_few_units<GridUnit<quant::BlockIQ1_M>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq2_xxs, ProductArgs, kFewThreads, 2) {
  multiply_few_units<GridUnit<quant::BlockIQ2_XXS>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq2_xs, ProductArgs, kFewThreads, 2) {
  multiply_few_units<GridUnit<quant::BlockIQ2_XS>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq2_s, ProductArgs, kFewThreads, 2) {
  multiply_few_units<GridUnit<quant::BlockIQ2_S>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq3_xxs, ProductArgs, kFewThreads, 2) {
  multiply_few_units<GridUnit<quant::BlockIQ3_XXS>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq3_s, ProductArgs, kFewThreads, 2) {
  multiply_few_units<GridUnit<quant::BlockIQ3_S>>(args);
}

}  // namespace candor::backend::cuda
