#include "serve/core/job_list.h"

#include <exception>
#include <utility>

namespace candor::serve {

void JobList::add(const std::shared_ptr<Work>& work) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [](const std::weak_ptr<Work>& old) { return old.expired(); });
  jobs_.push_back(work);
}

std::list<std::shared_ptr<Work>> JobList::all() {
  std::list<std::shared_ptr<Work>> found;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : jobs_) {
    if (auto work = weak.lock()) found.push_back(std::move(work));
  }
  return found;
}

void JobList::tick(std::chrono::milliseconds quiet) {
  for (const auto& work : all()) {
    try {
      work->tick(quiet);
    } catch (...) {
      faults_.note(http::FaultPlace::kReply, std::current_exception());
    }
  }
}

void JobList::abort_all(const Error& error) {
  for (const auto& work : all()) {
    try {
      work->abort(error);
    } catch (...) {
      faults_.note(http::FaultPlace::kReply, std::current_exception());
    }
  }
}

}  // namespace candor::serve
