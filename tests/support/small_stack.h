#pragma once
// Work on a thread with a stack of 256 KiB: what recurses as deep as its input would overflow it. Under sanitizers,
// whose frames are several times larger, on the caller's own.

#include <pthread.h>

#include <functional>

namespace candor::testing {

inline void run_on_small_stack(std::function<void()> work) {
#ifdef CANDOR_SANITIZED
  work();
#else
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, body, &work) == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
#endif
}

}  // namespace candor::testing
