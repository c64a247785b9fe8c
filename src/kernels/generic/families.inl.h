// The products of each family of weight formats (KernelFamily: floats, blocks of 32, super-blocks of 256, rows with one
// scale, blocks of floats, grids). Declared here in the namespace of an instruction set, and compiled there in a file
// for each family, so that no file takes long.

void multiply_floats(const MatmulArgs& a);
void multiply_blocks(const MatmulArgs& a);
void multiply_affine_super_blocks(const MatmulArgs& a);
void multiply_symmetric_super_blocks(const MatmulArgs& a);
void multiply_scaled_rows(const MatmulArgs& a);
void multiply_float_blocks(const MatmulArgs& a);
void multiply_grids(const MatmulArgs& a);
