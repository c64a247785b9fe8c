// The logits that llama.cpp gives for a GGUF file and a prompt of token ids: a tool for make_llama_cpp_tokens.py, built
// by it against a build of llama.cpp, and no part of this project's own build.
//   llama_cpp_logits MODEL.gguf OUT.f32 ID ID ...        OUT: [n ids, V] f32

#include <llama.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  llama_model* model = llama_model_load_from_file(argv[1], model_params);
  if (model == nullptr) return std::fprintf(stderr, "%s: llama.cpp cannot load it\n", argv[1]), 1;
  const int n_tokens = argc - 3;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 256;
  params.n_batch = 256;
  params.n_ubatch = 256;
  params.n_threads = 1;
  params.n_threads_batch = 1;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = GGML_TYPE_F32;
  params.type_v = GGML_TYPE_F32;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) return std::fprintf(stderr, "%s: no context\n", argv[1]), 1;
  llama_batch batch = llama_batch_init(n_tokens, 0, 1);
  for (int i = 0; i < n_tokens; ++i) {
    batch.token[i] = std::atoi(argv[i + 3]);
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  batch.n_tokens = n_tokens;
  if (llama_decode(context, batch) != 0) return std::fprintf(stderr, "%s: decode failed\n", argv[1]), 1;
  const size_t n_vocab = static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
  std::FILE* out = std::fopen(argv[2], "wb");
  if (out == nullptr) return 1;
  for (int i = 0; i < n_tokens; ++i) std::fwrite(llama_get_logits_ith(context, i), sizeof(float), n_vocab, out);
  return std::fclose(out);
}
