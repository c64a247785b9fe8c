// Products of many rows with formats whose codes name vectors of a grid.

#include "backend/cuda/kernels/grid_units.h"
#include "backend/cuda/kernels/many_units.h"

namespace candor::backend::cuda {

CANDOR_BOUNDED_KERNEL(product_iq1_s_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<GridUnit<quant::BlockIQ1_S>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq1_m_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<GridUnit<quant::BlockIQ1_M>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq2_xxs_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<GridUnit<quant::BlockIQ2_XXS>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq2_xs_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<GridUnit<quant::BlockIQ2_XS>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq2_s_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<GridUnit<quant::BlockIQ2_S>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq3_xxs_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<GridUnit<quant::BlockIQ3_XXS>>>(args);
}
CANDOR_BOUNDED_KERNEL(product_iq3_s_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyUnitSums<GridUnit<quant::BlockIQ3_S>>>(args);
}

}  // namespace candor::backend::cuda
