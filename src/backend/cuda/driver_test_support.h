#pragma once
// A driver of NVIDIA's for tests: memory is the host's, copies happen at once, kernels are noted and not run. It counts
// calls by their symbol, and fails a call when it is told to. One at a time; one thread. Graphs: graph_test_support.h.

#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/driver.h"
#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {

class FakeDriver {
 public:
  struct Failure {
    DriverStatus status = 0;
    int32_t n_good = 0;       // calls that succeed before
    bool stays_lost = false;  // every later call fails as well
  };
  struct Launched {
    std::string kernel{};
    uint32_t x = 0, n_threads = 0, shared_bytes = 0;
    float scale = 0.0f;  // of add_scaled
  };

  FakeDriver() { current_ = this; }
  ~FakeDriver() { current_ = nullptr; }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  DriverFunctions functions() const;

  int32_t version = 13050;
  int32_t n_devices = 1;
  int32_t major = 9;
  size_t free_bytes = size_t{70} << 30;
  std::map<std::string, Failure> failures{};
  std::vector<std::string> missing_kernels{};

  std::map<std::string, int32_t> n_calls{};
  std::vector<Launched> launched{};
  std::vector<int32_t> opened{};  // cards, by their numbers
  std::vector<std::pair<void*, int32_t>> attributes{};
  int32_t depth = 0;         // contexts that are pushed
  int32_t n_live = 0;        // allocations, events, streams, modules and contexts
  bool was_outside = false;  // a call that needs a context was made without one
  std::vector<std::string> modules{};

  enum class Needs { kNothing, kContext, kContextMaybeLost };
  // What a call returns, by what was asked for above.
  static DriverStatus enter(const char* symbol, Needs needs);
  static FakeDriver& current() { return *current_; }

 private:
  static inline FakeDriver* current_ = nullptr;
  std::optional<DriverStatus> lost_{};
};

inline DriverStatus FakeDriver::enter(const char* symbol, Needs needs) {
  FakeDriver& fake = current();
  const int32_t n = fake.n_calls[symbol]++;
  fake.was_outside = fake.was_outside || (needs != Needs::kNothing && fake.depth == 0);
  if (fake.lost_ && needs == Needs::kContext) return *fake.lost_;
  const auto failure = fake.failures.find(symbol);
  if (failure == fake.failures.end() || n < failure->second.n_good) return 0;
  if (failure->second.stays_lost) fake.lost_ = failure->second.status;
  return failure->second.status;
}

namespace fake {

inline DriverStatus name_error(DriverStatus status, const char** name) {
  static const std::map<DriverStatus, const char*> names = {
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},       {100, "CUDA_ERROR_NO_DEVICE"},
      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"}, {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},   {999, "CUDA_ERROR_UNKNOWN"}};
  const auto found = names.find(status);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? 1 : 0;
}

inline DriverStatus say_words(DriverStatus, const char** words) {
  *words = "words";
  return 0;
}

inline DriverStatus value_of(int32_t* value, DriverAttribute name) {
  const std::map<DriverAttribute, int32_t> values = {{driver::kMajor, FakeDriver::current().major},
                                                     {driver::kMinor, 0},
                                                     {driver::kProcessorCount, 132},
                                                     {driver::kMaxSharedBytes, 232448}};
  *value = values.at(name);
  return 0;
}

inline DriverStatus make(void** object, size_t n_bytes = 1) {
  *object = ::operator new (n_bytes, std::align_val_t{256});
  ++FakeDriver::current().n_live;
  return 0;
}
inline DriverStatus drop(void* object) {
  ::operator delete (object, std::align_val_t{256});
  --FakeDriver::current().n_live;
  return 0;
}

inline DriverStatus find(void** function, const char* name) {
  FakeDriver& fake = FakeDriver::current();
  for (const std::string& missing : fake.missing_kernels) {
    if (missing == name) return driver::kNotFound;
  }
  *function = const_cast<char*>(name);  // a kernel is its name
  return 0;
}

inline FakeDriver::Launched launch_of(void* function, uint32_t x, uint32_t n_threads, uint32_t shared_bytes,
                                      void** values) {
  FakeDriver::Launched launched{static_cast<const char*>(function), x, n_threads, shared_bytes};
  if (launched.kernel == kernel::add_scaled.name) launched.scale = static_cast<AddScaledArgs*>(values[0])->scale;
  return launched;
}

inline DriverStatus note_launch(void* function, uint32_t x, uint32_t n_threads, uint32_t shared_bytes, void** values) {
  FakeDriver::current().launched.push_back(launch_of(function, x, n_threads, shared_bytes, values));
  return 0;
}

}  // namespace fake

// A call that fails if it is told to, and does `body` otherwise.
#define CANDOR_FAKE_CALL(field, symbol, needs, parameters, body)                                         \
  functions.field = [] parameters -> DriverStatus {                                                      \
    if (const DriverStatus status = FakeDriver::enter(#symbol, FakeDriver::Needs::needs)) return status; \
    body;                                                                                                \
  };

inline DriverFunctions FakeDriver::functions() const {
  using H = DriverHandle;
  using A = DriverAddress;
  DriverFunctions functions;
  functions.error_name = fake::name_error;
  functions.error_text = fake::say_words;
  CANDOR_FAKE_CALL(init, cuInit, kNothing, (uint32_t), return 0)
  CANDOR_FAKE_CALL(version, cuDriverGetVersion, kNothing, (int32_t * v), *v = current().version; return 0)
  CANDOR_FAKE_CALL(device_count, cuDeviceGetCount, kNothing, (int32_t * n), *n = current().n_devices; return 0)
  CANDOR_FAKE_CALL(device, cuDeviceGet, kNothing, (int32_t * d, int32_t i), *d = i; return 0)
  CANDOR_FAKE_CALL(device_name, cuDeviceGetName, kNothing, (char* s, int32_t n, int32_t),
                   std::strncpy(s, "Fake 100", static_cast<size_t>(n));
                   return 0)
  CANDOR_FAKE_CALL(device_attribute, cuDeviceGetAttribute, kNothing, (int32_t * v, int32_t a, int32_t),
                   return fake::value_of(v, a))
  CANDOR_FAKE_CALL(device_memory, cuDeviceTotalMem_v2, kNothing, (size_t * n, int32_t), *n = size_t{80} << 30; return 0)
  CANDOR_FAKE_CALL(retain_context, cuDevicePrimaryCtxRetain, kNothing, (H * c, int32_t i), *c = &current();
                   current().opened.push_back(i); ++current().n_live; return 0)
  CANDOR_FAKE_CALL(release_context, cuDevicePrimaryCtxRelease_v2, kNothing, (int32_t), --current().n_live; return 0)
  CANDOR_FAKE_CALL(push_context, cuCtxPushCurrent_v2, kNothing, (H), ++current().depth; return 0)
  CANDOR_FAKE_CALL(pop_context, cuCtxPopCurrent_v2, kContextMaybeLost, (H*), --current().depth; return 0)
  CANDOR_FAKE_CALL(load_module, cuModuleLoadData, kContext, (H * m, const void*), return fake::make(m))
  CANDOR_FAKE_CALL(unload_module, cuModuleUnload, kContextMaybeLost, (H m), return fake::drop(m))
  CANDOR_FAKE_CALL(module_function, cuModuleGetFunction, kContext, (H * f, H, const char* n), return fake::find(f, n))
  CANDOR_FAKE_CALL(set_function_attribute, cuFuncSetAttribute, kContext, (H f, int32_t, int32_t v),
                   current().attributes.emplace_back(f, v);
                   return 0)
  CANDOR_FAKE_CALL(memory_info, cuMemGetInfo_v2, kContext, (size_t * f, size_t * n), *f = current().free_bytes;
                   *n = size_t{80} << 30; return 0)
  CANDOR_FAKE_CALL(allocate, cuMemAlloc_v2, kContext, (A * a, size_t n), return fake::make(reinterpret_cast<H*>(a), n))
  CANDOR_FAKE_CALL(release, cuMemFree_v2, kContextMaybeLost, (A a), return fake::drop(reinterpret_cast<H>(a)))
  CANDOR_FAKE_CALL(allocate_host, cuMemHostAlloc, kContext, (H * m, size_t n, uint32_t), return fake::make(m, n))
  CANDOR_FAKE_CALL(release_host, cuMemFreeHost, kContextMaybeLost, (H m), return fake::drop(m))
  CANDOR_FAKE_CALL(copy_in, cuMemcpyHtoDAsync_v2, kContext, (A d, const void* s, size_t n, H),
                   std::memcpy(reinterpret_cast<H>(d), s, n);
                   return 0)
  CANDOR_FAKE_CALL(copy_out, cuMemcpyDtoHAsync_v2, kContext, (H d, A s, size_t n, H),
                   std::memcpy(d, reinterpret_cast<H>(s), n);
                   return 0)
  CANDOR_FAKE_CALL(copy, cuMemcpyDtoDAsync_v2, kContext, (A d, A s, size_t n, H),
                   std::memmove(reinterpret_cast<H>(d), reinterpret_cast<H>(s), n);
                   return 0)
  CANDOR_FAKE_CALL(set_bytes, cuMemsetD8Async, kContext, (A d, uint8_t v, size_t n, H),
                   std::memset(reinterpret_cast<H>(d), v, n);
                   return 0)
  CANDOR_FAKE_CALL(create_stream, cuStreamCreate, kContext, (H * s, uint32_t), return fake::make(s))
  CANDOR_FAKE_CALL(destroy_stream, cuStreamDestroy_v2, kContextMaybeLost, (H s), return fake::drop(s))
  CANDOR_FAKE_CALL(synchronize, cuStreamSynchronize, kContext, (H), return 0)
  CANDOR_FAKE_CALL(create_event, cuEventCreate, kContext, (H * e, uint32_t), return fake::make(e))
  CANDOR_FAKE_CALL(destroy_event, cuEventDestroy_v2, kContextMaybeLost, (H e), return fake::drop(e))
  CANDOR_FAKE_CALL(record_event, cuEventRecord, kContext, (H, H), return 0)
  CANDOR_FAKE_CALL(wait_event, cuEventSynchronize, kContext, (H), return 0)
  CANDOR_FAKE_CALL(launch, cuLaunchKernel, kContext,
                   (H f, uint32_t x, uint32_t, uint32_t, uint32_t t, uint32_t, uint32_t, uint32_t s, H, H * v, H*),
                   return fake::note_launch(f, x, t, s, v))
  return functions;
}

}  // namespace candor::backend::cuda
