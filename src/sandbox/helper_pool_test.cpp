#include "sandbox/helper_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace candor::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SharedAsset template_of(std::string source) {
  return std::make_shared<const HelperAsset>(
      HelperAsset{.kind = HelperAsset::Kind::kTemplate, .bytes = std::move(source)});
}

// The 256 bytes and an end.
SharedAsset byte_vocabulary() {
  std::string bytes;
  const auto add = [&](uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
  };
  for (const uint32_t number : {257u, 1u, 256u}) add(number);
  for (int byte = 0; byte < 256; ++byte) {
    add(1);
    bytes += static_cast<char>(byte);
  }
  add(1u << 31);
  return std::make_shared<const HelperAsset>(
      HelperAsset{.kind = HelperAsset::Kind::kVocabulary, .bytes = std::move(bytes)});
}

constexpr uint8_t kSchema = 0;

// Processes that this one started and that are there still.
std::set<pid_t> children() {
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    const size_t end = line.rfind(')');
    int parent = 0;
    char state = 0;
    if (end == line.npos || std::sscanf(line.c_str() + end + 1, " %c %d", &state, &parent) != 2) continue;
    if (parent == getpid()) found.insert(static_cast<pid_t>(std::stol(line)));
  }
  return found;
}

std::span<const std::byte> as_program(std::string_view script) {
  return std::as_bytes(std::span(script.data(), script.size()));
}

// A template whose steps are cheap and many, and a schema that is tried until its time is over.
constexpr const char* kSteps = "{% for a in range(99999) %}{% set x = range(99999) | list | tojson %}{% endfor %}";
constexpr const char* kRuns = R"({"type": "integer", "multipleOf": 9999991})";

TEST(helper_pool, a_template_is_rendered_and_a_constraint_is_tried) {
  HelperPool pool;
  const auto hello = template_of("{{ greeting }}, {{ strftime_now('%Y') }}!");
  const auto rendered = pool.render(hello, R"({"greeting": "Hi"})", 86'400);
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_EQ(rendered->text, "Hi, 1970!");
  const auto vocabulary = byte_vocabulary();
  const auto tried = pool.try_constraint(vocabulary, kSchema, R"({"type": "integer"})");
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_EQ(tried->status, HelperStatus::kOk);
  EXPECT_EQ(pool.try_constraint(vocabulary, kSchema, R"({"type": "integr"})")->status, HelperStatus::kInvalid);
  EXPECT_EQ(pool.render(template_of("\n{{ 1 +"), "{}", 0)->line, 2u);
  EXPECT_EQ(pool.render(hello, "{", 0)->status, HelperStatus::kInvalid);
  EXPECT_EQ(children().size(), 1u);
}

TEST(helper_pool, each_hostile_job_is_one_refusal_and_the_next_is_served) {
  HelperPool pool;
  const std::string deep = "{% macro m(n) %}" + std::string(200, '(') + "1" + std::string(200, ')') + "{% endmacro %}";
  for (const std::string& source : {
           std::string(kSteps),
           std::string("{% set ns = namespace(x='abcdefgh') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}"
                       "{% endfor %}{{ ns.x }}"),
           "{{ " + std::string(50'000, '[') + " }}",
           std::string("{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}"),
           deep + "{{ m(",
       }) {
    const auto reply = pool.render(template_of(source), "{}", 0);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_NE(reply->status, HelperStatus::kOk) << source.substr(0, 80);
    EXPECT_NE(reply->status, HelperStatus::kInternal) << reply->text;
    EXPECT_EQ(pool.render(template_of("{{ 1 + 1 }}"), "{}", 0)->text, "2");
  }
  EXPECT_LE(children().size(), 1u);
}

TEST(helper_pool, a_constraint_that_outlives_its_time_or_memory_is_refused_as_often_as_it_comes) {
  HelperPool pool({.job = {.clock = std::chrono::seconds(100)}});  // two seconds of its processor, on a busy machine
  const auto vocabulary = byte_vocabulary();
  for (int i = 0; i < 3; ++i) {
    const auto reply = pool.try_constraint(vocabulary, kSchema, kRuns);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->status, HelperStatus::kLimit);
    EXPECT_TRUE(pool.try_constraint(vocabulary, kSchema, R"({"type": "integer", "multipleOf": 7})"));
  }
}

TEST(helper_pool, a_helper_that_someone_kills_costs_its_own_job_at_most) {
  HelperPool pool;
  const auto two = template_of("{{ 1 + 1 }}");
  ASSERT_EQ(pool.render(two, "{}", 0)->text, "2");
  ASSERT_EQ(children().size(), 1u);
  ::kill(*children().begin(), SIGKILL);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(pool.render(two, "{}", 0)->text, "2") << "an idle one is started again";
  std::thread killer([] {
    std::this_thread::sleep_for(milliseconds(300));
    for (const pid_t child : children()) ::kill(child, SIGKILL);
  });
  const auto killed = pool.try_constraint(byte_vocabulary(), kSchema, kRuns);
  killer.join();
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(pool.render(two, "{}", 0)->text, "2");
}

TEST(helper_pool, stopping_ends_what_runs_at_once_and_leaves_no_process) {
  HelperPool pool({.max_helpers = 2, .job = {.processor = seconds(60), .clock = seconds(60)}});
  std::array<std::thread, 4> threads;  // two of which wait for a helper
  std::atomic<int> n_cancelled = 0;
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      const auto reply = pool.try_constraint(byte_vocabulary(), kSchema, kRuns);
      if (!reply && reply.error().kind == ErrorKind::kCancelled) ++n_cancelled;
    });
  }
  std::this_thread::sleep_for(milliseconds(300));
  pool.stop();  // long before their time is over, which would be another error
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_cancelled, 4);
  EXPECT_EQ(pool.render(template_of("x"), "{}", 0).error().kind, ErrorKind::kCancelled);
  EXPECT_TRUE(children().empty());
}

TEST(helper_pool, many_threads_share_few_helpers) {
  HelperPool pool({.max_helpers = 2});
  const auto square = template_of("{{ n * n }}");
  std::array<std::thread, 8> threads;
  std::atomic<int> n_right = 0;
  for (size_t t = 0; t < threads.size(); ++t) {
    threads[t] = std::thread([&, t] {
      for (size_t i = 0; i < 50; ++i) {
        const size_t n = t * 100 + i;
        const auto reply = pool.render(square, "{\"n\": " + std::to_string(n) + "}", 0);
        n_right += reply && reply->text == std::to_string(n * n) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_right, 400);
  EXPECT_LE(children().size(), 2u);
}

TEST(helper_pool, who_finds_all_helpers_busy_is_told_so) {
  const std::string silent = "#!/bin/sh\nprintf '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&0\nexec sleep 60\n";
  HelperPool pool({.max_helpers = 1,
                   .job = {.processor = seconds(2), .clock = milliseconds(200)},
                   .program = as_program(silent)});
  std::array<ErrorKind, 3> kinds{};
  std::array<std::thread, 3> threads;
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i] = std::thread([&, i] {
      const auto reply = pool.render(template_of("x"), "{}", 0);
      kinds[i] = reply ? ErrorKind::kInternal : reply.error().kind;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ErrorKind kind : kinds) EXPECT_EQ(kind, ErrorKind::kBusy);
  EXPECT_TRUE(children().empty());
}

TEST(helper_pool, what_is_no_reply_is_an_error_and_not_a_wait) {
  const std::string hello = "#!/bin/sh\nprintf '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&0\n";
  for (const std::string rest : {
           // The end before a reply, half a head, half a text, one that is too long, no status, gone and not ended.
           "exit 0\n",
           "head -c 9 <&0 >/dev/null; printf '\\1\\0' >&0; exit 3\n",
           "head -c 9 <&0 >/dev/null; printf '\\7\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0x' >&0; exit 3\n",
           "head -c 9 <&0 >/dev/null; printf '\\377\\377\\377\\377\\0\\0\\0\\0\\0\\0\\0\\0' >&0; exec sleep 60\n",
           "head -c 9 <&0 >/dev/null; printf '\\0\\0\\0\\0\\377\\0\\0\\0\\0\\0\\0\\0' >&0; exec sleep 60\n",
           "exec 0<&-; exec sleep 60\n",
       }) {
    const std::string script = hello + rest;
    HelperPool pool({.program = as_program(script)});
    const auto reply = pool.render(template_of("x"), "{}", 0);
    EXPECT_FALSE(reply) << rest;
    EXPECT_TRUE(children().empty()) << rest;
  }
}

TEST(helper_pool, a_program_that_cannot_be_started_is_an_error_that_says_why) {
  for (const std::string script : {"no program at all", "#!/nowhere/sh\n", "#!/bin/sh\nexit 4\n"}) {
    HelperPool pool({.program = as_program(script)});
    const auto reply = pool.render(template_of("x"), "{}", 0);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().kind, ErrorKind::kIo) << reply.error().message;
    EXPECT_NE(reply.error().message.find("the helper process"), std::string::npos) << reply.error().message;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlimit none{.rlim_cur = 3, .rlim_max = files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  HelperPool pool;
  const auto reply = pool.render(template_of("x"), "{}", 0);
  setrlimit(RLIMIT_NOFILE, &files);
  ASSERT_FALSE(reply);
  EXPECT_EQ(pool.render(template_of("x"), "{}", 0)->text, "x") << "later it is tried again";
}

TEST(helper_pool, a_program_in_a_temporary_file_runs_as_well) {
  const std::string script = "#!/bin/sh\nprintf '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&0\nexec sleep 60\n";
  const auto program = program_in_temporary_file(as_program(script));
  ASSERT_TRUE(program) << program.error().message;
  const auto helper = HelperProcess::start(*program);
  EXPECT_TRUE(helper) << helper.error().message;
}

TEST(helper_pool, a_helper_has_no_descriptor_of_ours) {
  const int ours = ::dup(STDERR_FILENO);  // not closed on exec
  HelperPool pool;
  ASSERT_EQ(pool.render(template_of("x"), "{}", 0)->text, "x");
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(*children().begin()) + "/fd")) {
    EXPECT_LE(std::stoi(entry.path().filename()), 2);
  }
  ::close(ours);
}

}  // namespace
}  // namespace candor::sandbox
