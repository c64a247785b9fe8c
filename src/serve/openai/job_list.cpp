#include "serve/openai/job_list.h"

#include <exception>

namespace candor::openai {

void JobList::add(const std::shared_ptr<Work>& work) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [](const std::weak_ptr<Work>& old) { return old.expired(); });
  jobs_.push_back(work);
}

void JobList::abort_all(const Error& error) {
  std::list<std::weak_ptr<Work>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
  }
  for (const auto& weak : jobs) {
    const auto job = weak.lock();
    if (!job) continue;
    try {
      job->abort(error);
    } catch (...) {
      faults_.note(http::FaultPlace::kReply, std::current_exception());
    }
  }
}

}  // namespace candor::openai
