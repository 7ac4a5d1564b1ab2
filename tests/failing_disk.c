/* For LD_PRELOAD: a disk that begins to fail. While the file that $FAILING_WHEN names exists, it holds words
 * such as "write:EROFS unlink:EROFS sync:EIO", and what it names fails so below the folder $FAILING_BELOW.
 * "tear:EIO": half of what is to be written is written, and half of the rest, until a last byte fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(const char *what, const char *path) {
  const char *when = getenv("FAILING_WHEN"), *below = getenv("FAILING_BELOW");
  if (!when || !below || strncmp(path, below, strlen(below)) != 0) return 0;
  int in = open(when, O_RDONLY | O_CLOEXEC);
  if (in < 0) return 0;
  char words[256] = " ";
  ssize_t length = read(in, words + 1, sizeof words - 2);
  close(in);
  if (length <= 0) return 0;
  char wanted[32];
  snprintf(wanted, sizeof wanted, " %s:", what);
  char *found = strstr(words, wanted);
  if (!found) return 0;
  found += strlen(wanted);
  if (strncmp(found, "EROFS", 5) == 0) errno = EROFS;
  else if (strncmp(found, "ENOSPC", 6) == 0) errno = ENOSPC;
  else errno = EIO;
  return 1;
}

static int fails_at(const char *what, int fd) {
  int before = errno;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length <= 0) return 0;
  path[length] = 0;
  return fails(what, path);
}

ssize_t write(int fd, const void *data, size_t size) {
  if (fails_at("write", fd)) return -1;
  if (fails_at("tear", fd)) {
    if (size < 2) return -1;
    size /= 2;
  }
  return ((ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, size);
}

int unlink(const char *path) {
  if (fails("unlink", path)) return -1;
  return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
}

int ftruncate64(int fd, off64_t size) {
  if (fails_at("write", fd) || fails_at("truncate", fd)) return -1;
  return ((int (*)(int, off64_t))dlsym(RTLD_NEXT, "ftruncate64"))(fd, size);
}

int fdatasync(int fd) {
  if (fails_at("sync", fd)) return -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

int fsync(int fd) {
  if (fails_at("sync", fd)) return -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
