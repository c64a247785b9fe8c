/* What the program and the libraries in it take of glibc and version 2.27 lacks. Where the glibc at hand has the function,
 * that one is used. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 2.32: whether reference counts may do without atomic operations. */
char __libc_single_threaded = 0;

/* 2.30. `clock` may be another one than that of the condition: what is left is waited for by the condition's usual one,
 * CLOCK_REALTIME, which may jump; a wait that ends early or late is one that its callers expect. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  typedef int Function(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static Function* function = NULL;
  static int is_known = 0;
  if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&function, (Function*)dlsym(RTLD_NEXT, "pthread_cond_clockwait"), __ATOMIC_RELAXED);
    __atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
  }
  Function* known = __atomic_load_n(&function, __ATOMIC_RELAXED);
  if (known != NULL) return known(condition, mutex, clock, until);
  struct timespec now;
  struct timespec end;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &end) != 0) return EINVAL;
  end.tv_sec += until->tv_sec - now.tv_sec;
  end.tv_nsec += until->tv_nsec - now.tv_nsec;
  while (end.tv_nsec < 0) {
    end.tv_nsec += 1000000000;
    --end.tv_sec;
  }
  while (end.tv_nsec >= 1000000000) {
    end.tv_nsec -= 1000000000;
    ++end.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &end);
}

/* 2.34. Without it: those that are open now. All of the program's own are closed at exec anyway. */
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int from) {
  typedef int Function(posix_spawn_file_actions_t*, int);
  Function* known = (Function*)dlsym(RTLD_NEXT, "posix_spawn_file_actions_addclosefrom_np");
  if (known != NULL) return known(actions, from);
  DIR* open = opendir("/proc/self/fd");
  if (open == NULL) return 0;
  for (struct dirent* entry; (entry = readdir(open)) != NULL;) {
    char* end = NULL;
    const long fd = strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != '\0' || fd < from || fd == dirfd(open)) continue;
    const int error = posix_spawn_file_actions_addclose(actions, (int)fd);
    if (error != 0) {
      closedir(open);
      return error;
    }
  }
  closedir(open);
  return 0;
}

/* 2.35: where the unwinder finds the table of the frames of an address. */
struct Search {
  ElfW(Addr) address;
  struct dl_find_object* found;
};

static int look(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct Search* search = data;
  const ElfW(Phdr)* frames = NULL;
  const ElfW(Phdr)* holds = NULL;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = part;
    if (part->p_type == PT_LOAD && search->address - begin < part->p_memsz) holds = part;
  }
  if (holds == NULL || frames == NULL) return 0;
  memset(search->found, 0, sizeof *search->found);
  search->found->dlfo_map_start = (void*)(object->dlpi_addr + holds->p_vaddr);
  search->found->dlfo_map_end = (void*)(object->dlpi_addr + holds->p_vaddr + holds->p_memsz);
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  struct Search search = {(ElfW(Addr))address, found};
  return dl_iterate_phdr(look, &search) != 0 ? 0 : -1;
}
