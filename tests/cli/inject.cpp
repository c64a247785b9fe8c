// A library that is loaded before the program's others and lets the n-th call of one kind fail, as a full disk, a
// process without free descriptors or a machine without memory would:
//   CANDOR_FAULT=CALL:N:ERRNO[:stays]   the N-th CALL fails (stays: and all that follow); ERRNO 0: it does half of it;
//                                       ERRNO -S: signal S comes, and the call goes on
//   CANDOR_FAULT_DELAY_US=N             a slow disk: each open, read, write and fsync below the root takes so long
//   CANDOR_FAULT_ROOT=FOLDER            only calls that concern files below it count; allocations count from the first
//                                       of these on
//   CANDOR_FAULT_COUNT=FILE             receives how many of these calls there were
// CALL: open read write fsync rename mmap mkdir symlink new thread.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr int kMaxDescriptors = 4096;

std::atomic<bool> is_watched[kMaxDescriptors];
std::atomic<bool> has_begun{false};
std::atomic<long> n_calls{0};

struct Plan {
  char call[16] = "";
  long at = 0;
  int error = 0;
  bool stays = false;
  const char* root = nullptr;
  size_t root_bytes = 0;
  useconds_t delay_us = 0;

  Plan() {
    root = std::getenv("CANDOR_FAULT_ROOT");
    root_bytes = root == nullptr ? 0 : std::strlen(root);
    const char* delay = std::getenv("CANDOR_FAULT_DELAY_US");
    delay_us = delay == nullptr ? 0 : static_cast<useconds_t>(std::atoi(delay));
    const char* text = std::getenv("CANDOR_FAULT");
    char rest[16] = "";
    if (text == nullptr || std::sscanf(text, "%15[a-z]:%ld:%d:%15s", call, &at, &error, rest) < 3) return;
    stays = std::strcmp(rest, "stays") == 0;
  }
};

const Plan& plan() {
  static const Plan one;
  return one;
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_below_root(const char* path) {
  const Plan& p = plan();
  return p.root != nullptr && path != nullptr && std::strncmp(path, p.root, p.root_bytes) == 0;
}

bool is_of_disk(const char* call) {
  for (const char* one : {"open", "read", "write", "fsync"}) {
    if (std::strcmp(call, one) == 0) return true;
  }
  return false;
}

// Whether this call is the one; counts it.
bool hits(const char* call) {
  has_begun.store(true);
  const Plan& p = plan();
  if (p.delay_us != 0 && is_of_disk(call)) ::usleep(p.delay_us);
  if (std::strcmp(p.call, call) != 0) return false;
  const long n = n_calls.fetch_add(1) + 1;
  if (p.at == 0 || (n != p.at && !(p.stays && n > p.at))) return false;
  if (p.error < 0) return ::kill(::getpid(), -p.error), false;
  errno = p.error;
  return true;
}

bool is_file_of_root(int fd) {
  return fd >= 0 && fd < kMaxDescriptors && is_watched[fd].load();
}

int watch(int fd, bool is_root) {
  if (fd >= 0 && fd < kMaxDescriptors) is_watched[fd].store(is_root);
  return fd;
}

struct Report {
  ~Report() {
    const char* path = std::getenv("CANDOR_FAULT_COUNT");
    if (path == nullptr || !has_begun.load()) return;  // a helper of the program has no part in it
    char text[32];
    const int n = std::snprintf(text, sizeof text, "%ld\n", n_calls.load());
    const auto open_file = real<int (*)(const char*, int, ...)>("open");
    const auto write_file = real<ssize_t (*)(int, const void*, size_t)>("write");
    const int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0) [[maybe_unused]] const ssize_t done = write_file(fd, text, static_cast<size_t>(n));
  }
};
const Report report_at_exit;

void* allocate(size_t n_bytes, size_t alignment) {
  if (has_begun.load() && std::strcmp(plan().call, "new") == 0 && hits("new")) throw std::bad_alloc();
  const size_t whole = alignment == 0 ? n_bytes : (n_bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment == 0 ? std::malloc(n_bytes) : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

int open_or_fail(const char* name, const char* path, int flags, va_list more) {
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(more, int)) : 0;
  const bool is_root = is_below_root(path);
  if (is_root && hits("open")) return -1;
  return watch(real<int (*)(const char*, int, ...)>(name)(path, flags, mode), is_root);
}

FILE* fopen_or_fail(const char* name, const char* path, const char* mode) {
  const bool is_root = is_below_root(path);
  if (is_root && hits("open")) return nullptr;
  FILE* file = real<FILE* (*)(const char*, const char*)>(name)(path, mode);
  if (file != nullptr) watch(::fileno(file), is_root);
  return file;
}

}  // namespace

void* operator new(size_t n) { return allocate(n, 0); }
void* operator new[](size_t n) { return allocate(n, 0); }
void* operator new(size_t n, std::align_val_t a) { return allocate(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) { return allocate(n, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int fd = open_or_fail("open", path, flags, more);
  va_end(more);
  return fd;
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int fd = open_or_fail("open64", path, flags, more);
  va_end(more);
  return fd;
}
FILE* fopen(const char* path, const char* mode) { return fopen_or_fail("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return fopen_or_fail("fopen64", path, mode); }

int close(int fd) {
  watch(fd, false);
  return real<int (*)(int)>("close")(fd);
}

ssize_t read(int fd, void* data, size_t n) {
  const auto real_read = real<ssize_t (*)(int, void*, size_t)>("read");
  if (!is_file_of_root(fd) || !hits("read")) return real_read(fd, data, n);
  return plan().error != 0 ? -1 : real_read(fd, data, (n + 1) / 2);
}
ssize_t write(int fd, const void* data, size_t n) {
  const auto real_write = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (!is_file_of_root(fd) || !hits("write")) return real_write(fd, data, n);
  return plan().error != 0 ? -1 : real_write(fd, data, (n + 1) / 2);
}
size_t fwrite(const void* data, size_t size, size_t n, FILE* file) {
  const auto real_write = real<size_t (*)(const void*, size_t, size_t, FILE*)>("fwrite");
  if (!is_file_of_root(::fileno(file)) || !hits("write")) return real_write(data, size, n, file);
  const size_t done = real_write(data, size, n / 2, file);
  errno = plan().error != 0 ? plan().error : ENOSPC;
  return done;
}
int fflush(FILE* file) {
  if (file != nullptr && is_file_of_root(::fileno(file)) && hits("write") && plan().error != 0) return EOF;
  return real<int (*)(FILE*)>("fflush")(file);
}
int fsync(int fd) {
  if (is_file_of_root(fd) && hits("fsync")) return -1;
  return real<int (*)(int)>("fsync")(fd);
}
int rename(const char* from, const char* to) {
  if (is_below_root(to) && hits("rename")) return -1;
  return real<int (*)(const char*, const char*)>("rename")(from, to);
}
int mkdir(const char* path, mode_t mode) {
  if (is_below_root(path) && hits("mkdir")) return -1;
  return real<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}
int symlink(const char* target, const char* path) {
  if (is_below_root(path) && hits("symlink")) return -1;
  return real<int (*)(const char*, const char*)>("symlink")(target, path);
}
// Of files of the root, and of memory once one was opened.
void* mmap(void* address, size_t n, int protection, int flags, int fd, off_t offset) {
  const bool counts = fd >= 0 ? is_file_of_root(fd) : has_begun.load() && n >= (size_t{1} << 16);
  if (counts && hits("mmap")) return MAP_FAILED;
  return real<void* (*)(void*, size_t, int, int, int, off_t)>("mmap")(address, n, protection, flags, fd, offset);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (has_begun.load() && hits("thread")) return plan().error;
  return real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(
      thread, attributes, body, argument);
}
}
