#pragma once
// Tunes the C library's allocator to return freed memory to the system, for a process that lives long and meets
// requests of all sizes.

namespace candor::platform {

// Blocks from 256 KiB on go back to the system when they are freed, and threads share two arenas: what one large
// request took does not stay with the process, as pieces between others. Nothing where the C library is not glibc.
// REQUIRES: called before there are threads.
void give_freed_memory_back();

}  // namespace candor::platform
