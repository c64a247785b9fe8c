#pragma once
// How an engine is opened. Plain data; checked by Engine::open, which names the field and its range when a value is out
// of it. Nothing here changes an answer but the model, what its weights are read as, the backend and the type of the
// K/V cache. Any thread. Sizes are in tokens, or in what their name ends in (kv_bytes, step_ms).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "candor/adapters.h"
#include "candor/kv_type.h"

namespace candor {

// Where drafts come from: tokens proposed ahead, which one step of the model verifies together. They change no answer:
// only how many tokens a step gives.
enum class Speculation : std::uint8_t {
  kOff,
  kNgram,  // what followed the newest tokens where they stood before, in prompt and output
  kDraft,  // what a smaller model of the same vocabulary says, or a head for multi-token prediction that stands alone
           // in its file: EngineOptions::draft_path
  kHead,   // what the head for multi-token prediction says that the model's own file has
  kAuto,   // the head, where the model's file has one, or a file "mtp-" and its name beside it; else none
  kEagle,  // what an EAGLE-3 head of the model says, a folder or GGUF file: draft_path. kDraft takes such a head, too;
           // this refuses everything else
};

// What a step is expected to take, on which plans are made: rows alone, by measured points, and what is added by each
// position that a sequence looks back at, by each pair of a row and a position that it looks at, and by each row with
// logits beyond the first. Given to open(), the same requests in the same order give the same plans.
struct StepCosts {
  struct Point {
    std::int32_t n_rows = 0;
    double ms = 0;
  };
  std::vector<Point> points{};  // ascending by n_rows, from 1; ms must not fall
  double look_back_ns = 0;
  double attend_ns = 0;
  double out_row_ms = 0;
  double draft_ms = 0;       // one draft of the draft model or head, chosen as a request's tokens are
  double draft_read_ms = 0;  // each token of a text that it reads before its first draft
};

struct EngineOptions {
  std::filesystem::path model_path{};  // a GGUF file, or a folder of safetensors with its config.json
  std::string quantize{};     // "q4_k_m" and the like: weights are encoded while they are loaded; "" = as they are
  bool fast_weights = false;  // read Q4_K matrices as close values that cost less: docs/numerics.md, "Rebased weights"
  // What computes: "cpu"; "cuda", an NVIDIA GPU, with the same bits; "auto", the GPU where there is one, else the CPU; "reference", slow and in f32.
  std::string backend = "cpu";
  // Where the GPU has a part of the model, and the CPU the rest: how many layers the GPU has, from the last one on, the
  // output being one; and of how many blocks, from the first one on, the experts stay on the CPU. Absent: all, and where
  // that is more than the GPU holds, what makes a token quickest.
  std::optional<std::int32_t> gpu_layers{};
  std::optional<std::int32_t> cpu_experts{};
  std::int32_t n_threads = 0;   // 0 = what this machine advises
  std::int32_t n_ranks = 1;     // processes that share the model: each has some threads and its part of the weights
  std::filesystem::path rank_program{};  // the candor command, which the other ranks run; needed with several
  bool uses_mpi = false;                 // the ranks are those that mpirun started and that joined; this one is rank 0
  std::int64_t n_ctx = 0;           // context limit in tokens; 0 = the model's own, cut to what the K/V budget holds
  std::optional<KvType> kv_type{};  // of the K/V cache; absent: the backend's own
  std::uint64_t kv_bytes = 0;       // K/V budget; 0 = enough for max_running short or one full context, at most 1 GiB
  std::int32_t kv_blocks = 0;       // K/V budget in blocks; overrides kv_bytes when not 0
  // Recurrent states kept at the ends of K/V blocks, so that the prefix cache finds them, beside those that sequences
  // need; absent: as many as 256 MiB hold, 4 to 64.
  std::optional<std::int32_t> kept_states{};
  std::int32_t max_rows = 256;    // tokens computed in one step
  std::int32_t prefill_rows = 0;  // of those, at most this many of prompts; 0 = all
  std::int32_t max_running = 16;  // requests computed at once
  std::int32_t max_queued = 128;  // requests waiting; beyond it submit() answers kOverloaded
  // While others decode, prompts are read in chunks that let a step take about so long; 0 = 1.75 times what decoding
  // alone takes.
  double step_ms = 0;
  std::optional<StepCosts> costs{};  // absent: measured by open(), where max_running > 1 or drafts are made
  Speculation speculation = Speculation::kOff;
  std::filesystem::path draft_path{};  // with Speculation::kDraft or kEagle, and only then
  // N-grams draft beside a draft model or a head: for each text and step the one that is expected to gain most.
  bool ngrams_beside = true;
  // Of a model that takes images: its tower and projector, a GGUF file; empty: those in the model's folder, or the file
  // beside the model's that is called mmproj*.gguf. Their weights are read with the first image.
  std::filesystem::path mmproj_path{};
  bool takes_images = true;                                    // false: text alone
  std::uint64_t image_cache_bytes = std::uint64_t{256} << 20;  // encoded images that are kept for later requests
  std::vector<AdapterSource> adapters{};  // loaded with the model; requests say which of them they use
  bool prefix_cache = true;               // share the K/V of equal beginnings
  // Where the prefix cache goes when it has no room in memory, and when the engine is closed; empty: nowhere. Engines
  // and processes may share it. A folder that cannot be used is told of by Engine::disk_cache(), and the engine runs
  // without.
  std::filesystem::path cache_dir{};
  std::uint64_t cache_bytes = 0;  // of that folder; 0 = 10 GB, or a tenth of what the disk has left
  bool use_kv_cache = true;       // false recomputes every token at every step: for measuring only
};

}  // namespace candor
