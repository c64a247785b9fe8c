#include "prefix_store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace candor::prefix_store {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostSegmentBytes = uint64_t{256} << 20;
constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kSilenceNs = 60 * kNsPerSecond;
constexpr int64_t kMostPatienceNs = kNsPerSecond / 4;  // for the lock
constexpr std::chrono::milliseconds kLockPoll{10};
constexpr size_t kMostSmall = 16;  // segments below an eighth of their size; more become one
constexpr double kSecondsPerHour = 3600;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Error cannot(const fs::path& folder, const std::string& why) {
  return {ErrorKind::kIo, fmt::format("the cache folder {} {}", folder.string(), why), "cache_dir"};
}

// "0000000000000007.blocks"; nullopt for another file.
std::optional<uint64_t> number_of(const fs::path& path) {
  constexpr size_t kDigits = 16;
  const std::string name = path.stem().string();
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), number, 16);
  const bool is_one = path.extension() == ".blocks" && name.size() == kDigits && status == std::errc() &&
                      end == name.data() + name.size();
  return is_one ? std::optional(number) : std::nullopt;
}

Result<void> check_folder(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return cannot(folder, std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) return cannot(folder, "is no folder");
  if (status.st_uid != ::geteuid()) return cannot(folder, "is another user's: what it holds cannot be trusted");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return cannot(folder, "may be written to by others: `chmod go-w` it, or name another");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const StoreOptions& options) {
  std::error_code status;
  const fs::path parent = options.folder.parent_path();
  if (!parent.empty()) fs::create_directories(parent, status);
  if (::mkdir(options.folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return cannot(options.folder, fmt::format("cannot be made: {}", std::strerror(errno)));
  CANDOR_TRY(check_folder(options.folder));
  std::unique_ptr<Store> store(new Store(options));
  store->refresh(true);
  return store;
}

Store::Store(const StoreOptions& options)
    : options_{.folder = options.folder,
               .max_bytes = options.max_bytes,
               .segment_bytes = options.segment_bytes > 0 ? options.segment_bytes
                                                          : std::min(kMostSegmentBytes, options.max_bytes / 8)} {}

Store::~Store() {
  const Lock io(io_mutex_);
  close_segment();
  // Age is counted from the last time that something of it was found.
  for (const auto& [digest, entry] : entries_) {
    if (entry.n_found > 0) static_cast<void>(::utimensat(AT_FDCWD, entry.segment->path().c_str(), nullptr, 0));
  }
}

std::optional<RecordHeader> Store::find(const Digest& digest) const {
  const Lock lock(mutex_);
  const auto at = entries_.find(digest);
  return at == entries_.end() ? std::nullopt : std::optional(at->second.place.header);
}

bool Store::read(const Digest& digest, const Digest& parent, std::span<const int32_t> tokens,
                 std::vector<std::byte>& payload) {
  Lock lock(mutex_);
  const auto at = entries_.find(digest);
  if (at == entries_.end()) return false;
  const RecordHeader header = at->second.place.header;
  const uint64_t offset = at->second.place.offset;
  const std::shared_ptr<Segment> segment = at->second.segment;
  ++at->second.n_found;
  lock.unlock();
  RecordHeader stored;
  payload.resize(header.payload_bytes());
  const bool is_there = segment->read(offset, std::as_writable_bytes(std::span(&stored, 1))) &&
                        segment->read(offset + sizeof stored, payload);
  const bool is_it = is_there && is_sound(stored) && stored.digest == digest && stored.parent == parent &&
                     std::ranges::equal(stored.block_tokens(), tokens) && fits(stored, payload);
  if (is_it) return true;
  lock.lock();
  ++figures_.n_damaged;
  entries_.erase(digest);
  return false;
}

bool Store::append(RecordHeader header, std::span<const std::byte> payload) {
  const Lock io(io_mutex_);
  if (find(header.digest)) return true;
  const bool is_too_large = header.record_bytes() > options_.max_bytes / 4;
  if (now_ns() < silent_until_ns_ || is_too_large || !begin_writing()) return count_unwritten(), false;
  header.made_at = unix_seconds();
  seal(header, payload);
  make_room(header.record_bytes());
  return write(header, payload);
}

bool Store::begin_writing() {
  if (lock_.is_open()) return true;
  Descriptor file(::open((options_.folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) {
    note(cannot(options_.folder, fmt::format("cannot be written to: {}", std::strerror(errno))));
    return false;
  }
  const int64_t until_ns = now_ns() + kMostPatienceNs;
  while (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (now_ns() < until_ns) {
      std::this_thread::sleep_for(kLockPoll);
      continue;
    }
    silent_until_ns_ = now_ns() + kNsPerSecond;
    const Lock lock(mutex_);
    figures_.last_problem = "another process writes to the folder";
    return false;
  }
  lock_ = std::move(file);
  look();
  merge_small();
  return true;
}

void Store::end_writing() {
  const Lock io(io_mutex_);
  close_segment();
  lock_ = Descriptor();
}

std::optional<uint64_t> Store::remove_if(const std::function<bool(const RecordHeader&)>& test) {
  const Lock io(io_mutex_);
  if (!begin_writing()) return std::nullopt;
  return remove_where(test);
}

uint64_t Store::remove_where(const std::function<bool(const RecordHeader&)>& test) {
  close_segment();
  uint64_t n_removed = 0;
  for (const auto& [number, segment] : segments()) {
    std::vector<RecordPlace> kept = places_of(segment);
    const auto n_gone = std::erase_if(kept, [&](const RecordPlace& place) { return test(place.header); });
    n_removed += n_gone;
    if (n_gone > 0) remove(segment, kept);
  }
  return n_removed;
}

bool Store::make_segment() {
  const uint64_t number = next_number_++;
  auto made = Segment::create(options_.folder / fmt::format("{:016x}.blocks", number));
  if (!made) return note(made.error()), false;
  active_ = *made;
  const Lock lock(mutex_);
  segments_[number] = active_;
  return true;
}

bool Store::write(const RecordHeader& header, std::span<const std::byte> payload) {
  if (active_ != nullptr && active_->n_bytes() >= options_.segment_bytes) close_segment();
  if (active_ == nullptr && !make_segment()) return count_unwritten(), false;
  const auto offset = active_->append(header, payload);
  if (!offset) {
    count_unwritten();
    note(offset.error());
    close_segment();
    return false;
  }
  const Lock lock(mutex_);
  entries_[header.digest] = {.place = {header, *offset}, .segment = active_};
  return true;
}

void Store::close_segment() {
  if (active_ == nullptr) return;
  if (auto written = active_->write_index(places_of(active_)); !written) note(written.error());
  active_ = nullptr;
}

// A disk that is full is not asked for each block.
void Store::note(const Error& error) {
  silent_until_ns_ = now_ns() + kSilenceNs;
  const Lock lock(mutex_);
  figures_.last_problem = error.message;
}

void Store::count_unwritten() {
  const Lock lock(mutex_);
  ++figures_.n_unwritten;
}

void Store::refresh(bool at_once) {
  const Lock io(io_mutex_);
  if (at_once || now_ns() - looked_at_ns_ >= kNsPerSecond) look();
}

void Store::look() {
  looked_at_ns_ = now_ns();
  std::map<uint64_t, fs::path> found;
  std::error_code status;
  for (fs::directory_iterator at(options_.folder, status), end; !status && at != end; at.increment(status)) {
    const auto number = number_of(at->path());
    if (!number) continue;
    found[*number] = at->path();
    next_number_ = std::max(next_number_, *number + 1);
  }
  Segments known = segments();
  for (const auto& [number, segment] : known) {
    if (found.contains(number) && segment->is_at_its_path()) continue;
    const Lock lock(mutex_);
    forget(segment);
    segments_.erase(number);
  }
  uint64_t n_unsound = 0;
  known = segments();
  for (const auto& [number, path] : found) {
    const auto at = known.find(number);
    const std::shared_ptr<Segment> segment = at != known.end() ? at->second : Segment::open(path);
    if (segment == nullptr || segment == active_) continue;
    const std::vector<RecordPlace> places = segment->find_new(n_unsound);
    const Lock lock(mutex_);
    segments_[number] = segment;
    for (const RecordPlace& place : places)
      entries_.try_emplace(place.header.digest, Entry{.place = place, .segment = segment});
  }
  const Lock lock(mutex_);
  figures_.n_unsound_bytes = n_unsound;
}

void Store::forget(const std::shared_ptr<Segment>& segment) {
  std::erase_if(entries_, [&](const auto& one) { return one.second.segment == segment; });
  if (active_ == segment) active_ = nullptr;
}

Store::Segments Store::segments() const {
  const Lock lock(mutex_);
  return segments_;
}

std::vector<RecordPlace> Store::places_of(const std::shared_ptr<Segment>& segment, bool only_found) const {
  std::vector<RecordPlace> places;
  {
    const Lock lock(mutex_);
    for (const auto& [digest, entry] : entries_) {
      if (entry.segment == segment && (!only_found || entry.n_found > 0)) places.push_back(entry.place);
    }
  }
  std::ranges::sort(places, {}, &RecordPlace::offset);
  return places;
}

uint64_t Store::n_bytes() const {
  uint64_t n = 0;
  for (const auto& [number, segment] : segments()) n += segment->n_bytes();
  return n;
}

// nullptr where there is none but what is being written.
std::shared_ptr<Segment> Store::least_worth() {
  const Segments all = segments();
  std::map<std::shared_ptr<Segment>, double> ages;  // in hours
  for (const auto& [number, segment] : all) {
    struct stat status {};
    const bool is_known = ::stat(segment->path().c_str(), &status) == 0;
    const auto age = std::max<int64_t>(0, unix_seconds() - (is_known ? status.st_mtime : 0));
    ages[segment] = static_cast<double>(age) / kSecondsPerHour;
  }
  std::map<std::shared_ptr<Segment>, double> worth;
  {
    const Lock lock(mutex_);
    for (const auto& [digest, entry] : entries_) {
      const auto n_found = static_cast<double>(entry.n_found);
      const double age = entry.n_found > 0 ? 0.0 : ages[entry.segment];
      worth[entry.segment] += entry.place.header.n_tokens * (1 + n_found) / (1 + age);
    }
  }
  std::shared_ptr<Segment> least;
  double least_worth = 0;
  for (const auto& [number, segment] : all) {
    const double one = worth[segment] / static_cast<double>(std::max<uint64_t>(1, segment->n_bytes()));
    if (segment == active_ || segment->n_bytes() == 0 || (least != nullptr && one >= least_worth)) continue;
    least = segment;
    least_worth = one;
  }
  return least;
}

void Store::make_room(uint64_t n_bytes_wanted) {
  while (n_bytes() + n_bytes_wanted > options_.max_bytes) {
    std::shared_ptr<Segment> victim = least_worth();
    if (victim == nullptr) victim = active_;
    if (victim == nullptr) return;
    if (victim == active_) close_segment();
    std::vector<RecordPlace> found = places_of(victim, true);
    uint64_t n_found_bytes = 0;
    for (const RecordPlace& place : found) n_found_bytes += place.header.record_bytes();
    if (n_found_bytes > victim->n_bytes() / 2) found.clear();
    remove(victim, found);
    const Lock lock(mutex_);
    ++figures_.n_removed;
  }
}

// What is kept of it is written again.
void Store::remove(const std::shared_ptr<Segment>& segment, std::span<const RecordPlace> kept) {
  std::error_code status;
  fs::remove(segment->path(), status);
  fs::remove(fs::path(segment->path()).replace_extension(".index"), status);
  {
    const Lock lock(mutex_);
    std::erase_if(segments_, [&](const auto& one) { return one.second == segment; });
    forget(segment);
  }
  std::vector<std::byte> payload;
  for (const RecordPlace& place : kept) {
    payload.resize(place.header.payload_bytes());
    if (!segment->read(place.offset + sizeof(RecordHeader), payload) || !fits(place.header, payload)) continue;
    if (!write(place.header, payload)) return;
  }
}

// Every short run leaves one.
void Store::merge_small() {
  std::vector<std::shared_ptr<Segment>> small;
  for (const auto& [number, segment] : segments()) {
    const uint64_t n = segment->n_bytes();  // 0: of another version, or nobody's
    if (n > 0 && n < options_.segment_bytes / 8) small.push_back(segment);
  }
  if (small.size() <= kMostSmall) return;
  for (const auto& segment : small) remove(segment, places_of(segment));
}

std::vector<RecordPlace> Store::blocks() const {
  const Lock lock(mutex_);
  std::vector<RecordPlace> result;
  for (const auto& [digest, entry] : entries_) result.push_back(entry.place);
  return result;
}

StoreFigures Store::figures() const {
  const uint64_t n = n_bytes();
  const Lock lock(mutex_);
  StoreFigures figures = figures_;
  figures.n_bytes = n;
  figures.n_blocks = entries_.size();
  figures.n_segments = segments_.size();
  return figures;
}

}  // namespace candor::prefix_store
