#pragma once
// One append-only file of records. A reader finds them by the index beside the file, which was written when the segment
// was closed, or by going from header to header; what follows a header that is not sound is not there. The writer alone
// appends. One thread at a time, but for read() and n_bytes().

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "prefix_store/record.h"

namespace candor::prefix_store {

// A file descriptor that is closed with it.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

struct RecordPlace {
  RecordHeader header{};
  uint64_t offset = 0;  // of the header
};

class Segment {
 public:
  // nullptr where it cannot be opened as what it should be. for_writing: it is made, and must not be there.
  static std::shared_ptr<Segment> open(const std::filesystem::path& path);
  static Result<std::shared_ptr<Segment>> create(const std::filesystem::path& path);

  // Records that appeared since the last call. n_unsound: bytes that hold none, at the end or where the file is
  // damaged.
  std::vector<RecordPlace> find_new(uint64_t& n_unsound);
  // Any thread. False where the file does not hold so much there.
  bool read(uint64_t offset, std::span<std::byte> bytes) const;
  // Where it fails, the segment is as before.
  Result<uint64_t> append(const RecordHeader& header, std::span<const std::byte> payload);
  // Beside the file, for those who open it later.
  Result<void> write_index(std::span<const RecordPlace> records) const;

  // Whether its name still means this file.
  bool is_at_its_path() const;
  const std::filesystem::path& path() const { return path_; }
  uint64_t n_bytes() const { return end_; }

 private:
  Segment(std::filesystem::path path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  bool read_index(std::vector<RecordPlace>& records);

  const std::filesystem::path path_;
  Descriptor file_;
  std::atomic<uint64_t> end_ = 0;  // of what was found or appended
  bool is_broken_ = false;  // nothing behind end_ can be found
};

}  // namespace candor::prefix_store
