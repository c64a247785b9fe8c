#pragma once
// The list of all work in progress, so that all of it can be ended from outside. Any thread.

#include <chrono>
#include <list>
#include <memory>
#include <mutex>

#include "serve/http/faults.h"
#include "serve/core/job.h"

namespace candor::serve {

class JobList {
 public:
  // The faults are borrowed.
  explicit JobList(http::Faults& faults) : faults_(faults) {}

  // Remembered as long as others hold it.
  void add(const std::shared_ptr<Work>& work);
  // Work::tick() of each. What throws is noted.
  void tick(std::chrono::milliseconds quiet);
  // Every reply ends with the error. What throws is noted.
  void abort_all(const Error& error);

 private:
  std::list<std::shared_ptr<Work>> all();

  http::Faults& faults_;
  // Guarded by mutex_.
  std::mutex mutex_;
  std::list<std::weak_ptr<Work>> jobs_;
};

}  // namespace candor::serve
